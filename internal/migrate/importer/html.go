package importer

import (
	"fmt"
	"io"

	m "headgate/internal/markup"
)

// style is the look of the report, which needs nothing else.
const style = `
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a; background: #fff }
table { border-collapse: collapse; width: 100% } td, th { text-align: left; vertical-align: top; padding: .3rem .6rem; border-bottom: 1px solid #ddd }
code { white-space: pre-wrap; overflow-wrap: anywhere } tr:has(.not_possible) { background: #fde8e8 } tr:has(.close) { background: #fef6dc }
@media (prefers-color-scheme: dark) { body { color: #eee; background: #161616 } td, th { border-color: #444 } tr:has(.not_possible) { background: #4a1f1f } tr:has(.close) { background: #46391a } }
`

// WriteHTML writes the report as a page.
func (r *Report) WriteHTML(w io.Writer) error {
	title := m.Text("Import of a " + r.Source + " configuration")
	return m.Render(w, "en", m.List{m.El("title", title), m.Style(style)}, m.List{
		m.El("h1", title),
		m.El("p", m.Text(r.Summary())),
		m.If(len(r.Check) > 0, m.El("h2", m.Text("Look at these")),
			m.El("ul", m.Each(r.Check, func(text string) m.Part { return m.El("li", m.Text(text)) }))),
		m.El("h2", m.Text("Every directive")),
		m.Table([]string{"Where", "Directive", "Verdict", "Field", "Why"}, m.Each(r.Entries, row)),
	})
}

// row is the row of a directive.
func row(e Entry) m.Part {
	return m.Row(
		m.Text(fmt.Sprintf("%s:%d", e.File, e.Line)), m.El("code", m.Text(e.Directive)), m.List{m.Class(string(e.Verdict)), m.Text(e.Verdict)},
		m.Each(e.Became, func(field string) m.Part { return m.List{m.El("code", m.Text(field)), m.Text(" ")} }),
		m.Text(e.Note))
}
