package compare

import (
	"cmp"
	"fmt"
	"io"
	"strconv"

	m "headgate/internal/markup"
)

// style is the look of the report, which needs nothing else.
const style = `
:root{color-scheme:light dark;--line:#d5dbe1;--soft:#5b6875;--bad:#b3261e;--warn:#8a5a00}
@media(prefers-color-scheme:dark){:root{--line:#2c353f;--soft:#98a5b3;--bad:#ff8a80;--warn:#ffc266}}
body{font:16px/1.5 system-ui,sans-serif;max-width:70rem;margin:3rem auto;padding:0 1.25rem}
h1{font-size:1.6rem;margin:0}h2{font-size:1.15rem;margin:2.25rem 0 .5rem}
p,li{color:var(--soft)}table{border-collapse:collapse;width:100%;font-size:.9rem}
th,td{text-align:left;vertical-align:top;padding:.4rem .75rem .4rem 0;border-top:1px solid var(--line);overflow-wrap:anywhere}
code{font:13px ui-monospace,monospace}.breaks{color:var(--bad);font-weight:600}.differs{color:var(--warn);font-weight:600}
`

// WriteHTML writes the report as a page.
func (r *Report) WriteHTML(w io.Writer) error {
	title := fmt.Sprintf("%d %% alike", r.Percent)
	return m.Render(w, "en", m.List{m.El("title", m.Text("Comparison: "+title)), m.Style(style)}, m.List{m.El("main",
		m.El("h1", m.Text(title)),
		m.El("p", m.Text(fmt.Sprintf("%d of %d requests are answered alike. Old: %s %s; new: %s %s. %s",
			r.Ready, r.Requests, r.Old.HTTP, r.Old.HTTPS, r.New.HTTP, r.New.HTTPS, r.Began.Format("2006-01-02 15:04 MST")))),
		m.Each(r.Notes, func(note string) m.Part { return m.El("p", m.Text(note)) }),
		m.Each(r.Proxies, proxySection),
		m.El("h2", m.Text("Every request with a difference")),
		m.Table([]string{"Request", "Old", "New", "Differences"}, m.Each(r.Results, resultRow)),
	)})
}

// proxySection has the readiness of a proxy and the reasons of its differences.
func proxySection(p Readiness) m.Part {
	return m.List{
		m.El("h2", m.Text(fmt.Sprintf("%s: %d %%", cmp.Or(p.Proxy, "No proxy of ours"), p.Percent))),
		m.El("p", m.Text(fmt.Sprintf("%d of %d requests", p.Ready, p.Requests))),
		m.If(len(p.Reasons) > 0, m.Table([]string{"Weight", "About", "What", "Requests"}, m.Each(p.Reasons, reasonRow))),
	}
}

func reasonRow(r Reason) m.Part {
	return m.Row(
		m.List{m.Class(string(r.Weight)), m.Text(r.Weight)},
		m.Text(r.Kind),
		m.List{m.Text(r.Text), m.El("br"), m.El("code", m.Text(r.Example))},
		m.Text(strconv.Itoa(r.Requests)))
}

func resultRow(r Result) m.Part {
	return m.Row(
		m.El("code", m.Text(r.Request.Method+" "+r.Request.URL())),
		m.Text(answered(r.Old)), m.Text(answered(r.New)),
		m.Each(r.Differences, func(d Difference) m.Part {
			return m.List{m.El("span", m.Class(string(d.Weight)), m.Text(d.Text)), m.El("br")}
		}))
}

// answered returns the status of an answer, or why there was none.
func answered(s Summary) string {
	if s.Error != "" {
		return s.Error
	}
	return strconv.Itoa(s.Status)
}
