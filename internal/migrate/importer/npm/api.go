package npm

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"headgate/internal/migrate/importer"
)

// asked are the lists of the API by their tables.
var asked = []struct{ table, path string }{
	{"certificate", "/api/nginx/certificates"},
	{"access_list", "/api/nginx/access-lists?expand=items,clients"},
	{"proxy_host", "/api/nginx/proxy-hosts"},
	{"redirection_host", "/api/nginx/redirection-hosts"},
	{"dead_host", "/api/nginx/dead-hosts"},
	{"stream", "/api/nginx/streams"},
	{"setting", "/api/settings"},
}

// FromAPI reads the same as Import over the API of Nginx Proxy Manager at address, such
// as http://127.0.0.1:81, with a token of it. Passwords of access lists are not part of
// its answers. The client bounds each of its seven questions.
func FromAPI(ctx context.Context, client *http.Client, address, token string) ([]byte, *importer.Report, error) {
	base, err := importer.Base(address, "Nginx Proxy Manager", "http://127.0.0.1:81")
	if err != nil {
		return nil, nil, err
	}
	if token == "" {
		return nil, nil, fmt.Errorf("%s: a token is needed; POST an identity and a secret to /api/tokens of Nginx Proxy Manager to get one", address)
	}
	s := &source{name: base, tables: map[string][]*record{}}
	for _, q := range asked {
		rows, err := getList(ctx, client, base+q.path, token)
		if err != nil {
			return nil, nil, err
		}
		for _, row := range rows {
			s.add(q.table, row)
			s.expanded(q.table, row)
		}
	}
	return translate(s)
}

// expanded returns the entries of an access list, which its response
// contains.
func (s *source) expanded(table string, row map[string]any) {
	if table != "access_list" {
		return
	}
	for field, table := range map[string]string{"items": "access_list_auth", "clients": "access_list_client"} {
		entries, _ := row[field].([]any)
		for _, e := range entries {
			if fields, ok := e.(map[string]any); ok {
				fields["access_list_id"] = row["id"]
				s.add(table, fields)
			}
		}
	}
}

func getList(ctx context.Context, client *http.Client, address, token string) ([]map[string]any, error) {
	data, err := importer.Fetch(ctx, client, address, token)
	if err != nil {
		return nil, err
	}
	var rows []map[string]any
	if err := json.Unmarshal(data, &rows); err != nil {
		return nil, fmt.Errorf("%s: the answer is not a list in JSON: %w", address, err)
	}
	return rows, nil
}
