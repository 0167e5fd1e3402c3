package api

import (
	"net/http"

	"headgate/internal/operator"
	"headgate/internal/plan"
)

// mirrorRows are the rows of mirrors whose responses are compared.
func (a *API) mirrorRows() []row {
	query := append(paging("name"), parameter{name: "proxy", about: "Only the routes of this proxy."})
	return []row{
		{method: http.MethodGet, path: "/mirrors", access: viewer, area: areaServers, out: of[plan.MirrorReport](), list: true, query: query, may: []int{404}, handle: a.listMirrors,
			about: "Lists the routes whose `mirror` has `compare`: how the responses of the mirror differ from those of the servers, as this machine has counted since its start, with samples."},
	}
}

// listMirrors lists comparisons.
func (a *API) listMirrors(c *call) (any, error) {
	if _, err := a.running(); err != nil {
		return nil, err
	}
	name, all := c.text("proxy"), []listed(nil)
	for _, m := range a.Control.Plan().MirrorReports() {
		if name == "" || name == m.Proxy {
			all = append(all, listed{name: m.Proxy + " " + m.Route, value: m})
		}
	}
	if name != "" && all == nil {
		return nil, refuseParameter(operator.CodeNotFound, "proxy", "no route of such a proxy compares mirrored responses", "GET /mirrors lists those that do")
	}
	return c.list(all)
}
