package api

import (
	_ "embed"
	"encoding/json"
)

// openapi is the OpenAPI document, which go generate writes from the table and the comments.
//
//go:embed openapi.json
var openapi []byte

// openAPI returns the document.
func (a *API) openAPI(*call) (any, error) { return json.RawMessage(openapi), nil }
