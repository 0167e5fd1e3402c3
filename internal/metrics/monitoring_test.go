package metrics

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// documented is a metric as docs/reference/metrics.md lists it.
type documented struct {
	kind   string
	labels []string
}

// reference returns the metrics of docs/reference/metrics.md by name.
func reference(t *testing.T) map[string]documented {
	t.Helper()
	page, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]documented{}
	row := regexp.MustCompile("(?m)^\\| `(headgate_[a-z_]+)` \\| ([a-z]+) \\| ([^|]*) \\|")
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		var labels []string
		for _, label := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(m[3], -1) {
			labels = append(labels, label[1])
		}
		all[m[1]] = documented{kind: m[2], labels: labels}
	}
	if len(all) < 30 {
		t.Fatalf("the reference lists %d metrics", len(all))
	}
	return all
}

var (
	selector     = regexp.MustCompile(`([a-z]+_[a-z_]+)(?:\{([^}]*)\})?`)
	matcher      = regexp.MustCompile(`([a-z_]+) *(?:=~|!~|!=|=)`)
	aggregated   = regexp.MustCompile(`\b(?:by|without) *\(([^)]*)\)`)
	ofPrometheus = []string{"job", "instance"} // labels that a scrape adds
)

// checkQuery reports metrics and labels of a PromQL expression that headgate does not
// have, and brackets that do not match.
func checkQuery(t *testing.T, where, expr string, known map[string]documented) {
	t.Helper()
	for _, pair := range []string{"()", "[]", "{}"} {
		if strings.Count(expr, pair[:1]) != strings.Count(expr, pair[1:]) {
			t.Errorf("%s: %q do not match in %s", where, pair, expr)
		}
	}
	var labels []string // those of the metrics that the expression reads
	found := false
	for _, m := range selector.FindAllStringSubmatch(expr, -1) {
		name := m[1]
		if !strings.HasPrefix(name, "headgate_") {
			found = found || strings.HasPrefix(name, "process_") || strings.HasPrefix(name, "go_")
			continue
		}
		found = true
		metric, ok := known[name]
		if base, bucket := strings.CutSuffix(name, "_bucket"); bucket && known[base].kind == "histogram" {
			metric, ok = known[base], true
			labels = append(labels, "le")
		}
		if !ok {
			t.Errorf("%s: no metric is named %s", where, name)
			continue
		}
		labels = append(labels, metric.labels...)
		for _, label := range matcher.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(metric.labels, label[1]) && !slices.Contains(ofPrometheus, label[1]) {
				t.Errorf("%s: %s has no label %s", where, name, label[1])
			}
		}
	}
	if !found && expr != `up{job="headgate"} == 0` {
		t.Errorf("%s: %s reads no metric", where, expr)
	}
	for _, m := range aggregated.FindAllStringSubmatch(expr, -1) {
		for label := range strings.SplitSeq(m[1], ",") {
			if label = strings.TrimSpace(label); !slices.Contains(labels, label) && !slices.Contains(ofPrometheus, label) {
				t.Errorf("%s: %s aggregates by %s, which none of its metrics has", where, expr, label)
			}
		}
	}
}

// dashboard is the part of Grafana's dashboard format that an import needs.
type dashboard struct {
	UID           string `json:"uid"`
	Title         string `json:"title"`
	SchemaVersion int    `json:"schemaVersion"`
	Panels        []struct {
		ID         int    `json:"id"`
		Type       string `json:"type"`
		Title      string `json:"title"`
		Datasource struct{ Type, UID string }
		GridPos    struct{ H, W, X, Y int }
		Targets    []struct{ RefID, Expr, LegendFormat string }
	} `json:"panels"`
	Templating struct {
		List []struct{ Name, Type, Definition string }
	} `json:"templating"`
	Annotations struct {
		List []struct{ Name, Expr string }
	} `json:"annotations"`
}

func TestGrafanaDashboardQueriesMetricsThatExist(t *testing.T) {
	t.Parallel()
	known := reference(t)
	text, err := os.ReadFile("../../packaging/monitoring/grafana-dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if d.UID == "" || d.Title == "" || d.SchemaVersion < 30 {
		t.Errorf("uid %q, title %q, schemaVersion %d: an import needs all of them", d.UID, d.Title, d.SchemaVersion)
	}
	variables := map[string]bool{"__rate_interval": true, "__all": true}
	for _, v := range d.Templating.List {
		variables[v.Name] = true
		if v.Type == "query" {
			checkQuery(t, "variable "+v.Name, v.Definition, known)
		}
	}
	for _, name := range regexp.MustCompile(`\$\{?([a-zA-Z_]+)`).FindAllStringSubmatch(string(text), -1) {
		if !variables[name[1]] {
			t.Errorf("the variable %s is not defined", name[1])
		}
	}
	for _, a := range d.Annotations.List {
		checkQuery(t, "annotation "+a.Name, a.Expr, known)
	}
	ids, queries := map[int]bool{}, 0
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" || p.GridPos.W < 1 || p.GridPos.H < 1 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %d, %q: the id must be unique, the title set and the position within 24 columns: %+v", p.ID, p.Title, p.GridPos)
		}
		ids[p.ID] = true
		if p.Type == "row" {
			continue
		}
		if p.Datasource.Type != "prometheus" || p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 {
			t.Errorf("panel %q: data source %+v and %d queries", p.Title, p.Datasource, len(p.Targets))
		}
		refs := map[string]bool{}
		for _, q := range p.Targets {
			if q.RefID == "" || refs[q.RefID] {
				t.Errorf("panel %q: refId %q must be set and unique", p.Title, q.RefID)
			}
			refs[q.RefID] = true
			checkQuery(t, "panel "+p.Title, q.Expr, known)
			queries++
		}
	}
	if queries < 20 {
		t.Errorf("the dashboard has %d queries", queries)
	}
}

func TestPrometheusRulesQueryMetricsThatExist(t *testing.T) {
	t.Parallel()
	known := reference(t)
	text, err := os.ReadFile("../../packaging/monitoring/prometheus-rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(text, &rules); err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "monitoring.md"))
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			count++
			if rule.For == "" || rule.Labels["severity"] == "" || rule.Annotations["summary"] == "" {
				t.Errorf("alert %s: for, severity and summary must be set", rule.Alert)
			}
			checkQuery(t, "alert "+rule.Alert, rule.Expr, known)
			if !strings.Contains(string(guide), "| `"+rule.Alert+"` |") {
				t.Errorf("docs/guides/monitoring.md does not list the alert %s", rule.Alert)
			}
		}
	}
	if count == 0 {
		t.Error("there are no alerts")
	}
}
