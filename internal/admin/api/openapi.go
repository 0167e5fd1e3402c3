package api

import (
	_ "embed"
	"encoding/json"
	"sync"

	"headgate/internal/schema"
)

// openapi is the OpenAPI document, which go generate writes from the table and the comments:
// openapi.json is for readers, and this form of it, a tenth of the size, for the program.
//
//go:embed openapi.json.gz
var openapi []byte

var openAPIDocument = sync.OnceValue(func() json.RawMessage { return schema.Unpack(openapi) })

// openAPI returns the document.
func (a *API) openAPI(*call) (any, error) { return openAPIDocument(), nil }
