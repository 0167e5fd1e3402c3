package translate

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"headgate/internal/migrate/importer/npm"
)

// keptByNPM are lists of Nginx Proxy Manager's API, by their paths: the kinds of what it
// keeps.
var keptByNPM = map[string]string{
	"/api/nginx/certificates": "certificate", "/api/nginx/access-lists": "access_list", "/api/nginx/proxy-hosts": "proxy_host",
	"/api/nginx/redirection-hosts": "redirection_host", "/api/nginx/dead-hosts": "dead_host", "/api/nginx/streams": "stream", "/api/settings": "setting",
}

// besideNPM are fields that have no verdict of their own: what Nginx Proxy Manager notes
// for itself, and what is told together with another field.
var besideNPM = strings.Fields(`id created_on modified_on owner_user_id is_deleted meta proxy_host_count hint password access_list_id
	forward_scheme forward_port forward_http_code incoming_port forwarding_host forwarding_port directive nice_name expires_on
	description advanced_config items clients locations enabled name domain_names`)

// settingsOfNPM imports objects of each kind with all their fields over the API, as
// testdata/npm.json has them.
func settingsOfNPM(t *testing.T) (all []setting) {
	t.Helper()
	data, err := os.ReadFile("testdata/npm.json")
	if err != nil {
		t.Fatal(err)
	}
	var kept map[string][]map[string]any
	if err := json.Unmarshal(data, &kept); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		_ = json.NewEncoder(w).Encode(kept[keptByNPM[rq.URL.Path]])
	}))
	defer server.Close()
	_, report, err := npm.FromAPI(t.Context(), http.DefaultClient, server.URL, "token")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, e := range report.Entries {
		object, example, _ := strings.Cut(e.Directive, ": ")
		field, _, ok := strings.Cut(example, " = ")
		kind := strings.TrimRight(strings.SplitN(object, "(", 2)[0], " 0123456789")
		if ok && !known[kind+" "+field] {
			known[kind+" "+field] = true
			all = append(all, setting{kind, example, e.Verdict, e.Note})
		}
	}
	for kind, objects := range kept {
		for _, field := range slices.Sorted(maps.Keys(objects[0])) {
			if !known[strings.ReplaceAll(kind, "_", " ")+" "+field] && !slices.Contains(besideNPM, field) {
				t.Errorf("Nginx Proxy Manager: %s of %s has no verdict", field, kind)
			}
		}
	}
	return all
}
