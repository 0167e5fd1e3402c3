package npm

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"headgate/internal/cutover/importer"
)

// maxAnswer bounds one answer of the API, in bytes.
const maxAnswer = 64 << 20

// asked are the lists of the API by the tables that they stand for.
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
	base, err := url.Parse(strings.TrimSuffix(address, "/"))
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" || base.User != nil {
		return nil, nil, fmt.Errorf("invalid address %q of Nginx Proxy Manager, want one like http://127.0.0.1:81", address)
	}
	if token == "" {
		return nil, nil, fmt.Errorf("%s: a token is needed; POST an identity and a secret to /api/tokens of Nginx Proxy Manager gives one", address)
	}
	s := &source{name: base.Redacted(), tables: map[string][]*record{}}
	for _, q := range asked {
		rows, err := getList(ctx, client, base.String()+q.path, token)
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

// expanded takes the entries of an access list, which its answer holds.
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
	rq, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	rq.Header.Set("Authorization", "Bearer "+token)
	rq.Header.Set("Accept", "application/json")
	rs, err := client.Do(rq)
	if err != nil {
		return nil, err
	}
	defer rs.Body.Close()
	data, err := io.ReadAll(io.LimitReader(rs.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", address, err)
	case len(data) > maxAnswer:
		return nil, fmt.Errorf("%s: the answer is larger than %d MiB", address, maxAnswer>>20)
	case rs.StatusCode == http.StatusUnauthorized || rs.StatusCode == http.StatusForbidden:
		return nil, fmt.Errorf("%s: status %d: the token is wrong, has expired, or may not read this", address, rs.StatusCode)
	case rs.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s: status %d; is this the address of Nginx Proxy Manager's own pages (port 81)?", address, rs.StatusCode)
	}
	var rows []map[string]any
	if err := json.Unmarshal(data, &rows); err != nil {
		return nil, fmt.Errorf("%s: the answer is not a list in JSON: %w", address, err)
	}
	return rows, nil
}
