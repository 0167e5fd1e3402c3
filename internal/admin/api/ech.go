package api

import (
	"net/http"

	"headgate/internal/control"
)

// echRows are the rows of Encrypted Client Hello.
func (a *API) echRows() []row {
	return []row{
		{method: http.MethodGet, path: "/ech", access: viewer, area: areaPorts, out: of[control.ECHState](), list: true, query: paging("name"), handle: a.listECH,
			about: "Lists the ports with Encrypted Client Hello: the public name, the keys without what is secret, and the HTTPS records with which clients use them."},
	}
}

// listECH lists the ports with Encrypted Client Hello.
func (a *API) listECH(c *call) (any, error) {
	if a.Control == nil {
		return page{Items: []any{}}, nil
	}
	var all []listed
	for _, s := range a.Control.ECH() {
		all = append(all, listed{name: s.Port, text: s.PublicName, value: s})
	}
	return c.list(all)
}
