package metrics

import (
	"fmt"
	"strings"
	"time"
)

// referencePage returns the reference page of all metrics, in Markdown.
func referencePage() string {
	var b strings.Builder
	b.WriteString(`# Metrics

<!-- Generated from internal/metrics/table.go by "go generate ./internal/metrics". Do not edit. -->

The admin listener serves these metrics at ` + "`/metrics`" + `, in the text format of Prometheus, as OpenMetrics or as
protocol buffers. It also serves the metrics of the Go runtime (` + "`go_*`" + `) and of the process (` + "`process_*`" + `).

Labels have a limited number of values: ports, proxies, routes and servers of the active configuration, and the
reasons of the access log. A route appears with its first request. A route or server that a change removed
disappears.

| metric | kind | labels | meaning |
|---|---|---|---|
`)
	f := table()
	for _, m := range f.all() {
		labels := "–"
		if len(m.labels) > 0 {
			labels = "`" + strings.Join(m.labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.name, m.kind, labels, m.help)
	}
	b.WriteString("\nBuckets of `" + f.duration.name + "` and `" + f.firstByte.name + "`: ")
	for i, bound := range bounds {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(bound.Round(time.Microsecond).String())
	}
	b.WriteString(`. A Prometheus that supports native histograms gets buckets that are at most 19 %
wide instead.
`)
	return b.String()
}
