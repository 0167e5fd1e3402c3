package h2

import (
	"fmt"

	"headgate/internal/proto/http2"
)

// connError ends a connection: GOAWAY with its code is sent. The text goes to
// the log and along with the GOAWAY.
type connError struct {
	code  http2.Code
	flood Flood // None if it was no flood
	text  string
}

// Error returns the text with the code.
func (e *connError) Error() string { return fmt.Sprintf("%s (error code %d)", e.text, e.code) }

func broken(c http2.Code, text string) error { return &connError{code: c, text: text} }
