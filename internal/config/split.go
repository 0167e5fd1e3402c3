package config

import "headgate/internal/schema"

// checkSplit reports problems of the groups of a route with servers.
func checkSplit(r *Route, at schema.Place) {
	groups, weights := map[string]bool{}, map[bool]int{} // by whether it is the candidate
	for i, s := range r.Servers {
		place := at.Field("servers").Index(i).Called("server", s.URL)
		if s.IsCandidate() && r.Split == nil {
			place.Field("group").Problem("the route has no split", "add split, or remove group")
			return
		}
		if other, ok := groups[s.URL]; ok && other != s.IsCandidate() {
			place.Field("url").Problem("the server is in both groups", "remove one of the two")
		}
		groups[s.URL] = s.IsCandidate()
		weights[s.IsCandidate()] += s.Weight
	}
	if r.Split == nil {
		return
	}
	r.Split.Check(at.Field("split"))
	if _, ok := weights[true]; !ok {
		at.Field("split").Problem("no server has group: candidate", "write group: candidate at the servers of the new version")
	} else if weights[false] == 0 {
		at.Field("servers").Problem("no stable server has a weight", "add a server without group, or with group: stable")
	} else if weights[true] == 0 {
		at.Field("servers").Problem("every candidate server has weight 0", "give one a weight of at least 1, and write candidate: 0 under split to start without clients")
	}
}
