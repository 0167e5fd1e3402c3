package page

import (
	"hash/fnv"
	"html"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	m "headgate/internal/markup"
)

// tile is the link of an application with its icon.
func tile(t Tile) m.Part {
	return m.El("a", m.Href(t.URL),
		m.El("img", m.At("src", t.Icon), m.At("alt", ""), m.At("width", "48"), m.At("height", "48")),
		m.El("span", m.Class("name"), m.Text(t.Name)),
		m.El("span", m.Class("host"), m.Text(t.Label)),
		m.If(t.Problem != "", m.El("span", m.Class("problem"), m.Text(t.Problem))))
}

// hues is how many colors letters have.
const hues = 12

// Letter returns the icon of an application without one, as SVG: the first letter or digit of
// its name on a color that depends on the name.
func Letter(name string) []byte {
	letter := "?"
	if i := strings.IndexFunc(name, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }); i >= 0 {
		r, _ := utf8.DecodeRuneInString(name[i:])
		letter = string(unicode.ToUpper(r))
	}
	sum := fnv.New32a()
	sum.Write([]byte(name))
	hue := strconv.Itoa(int(sum.Sum32()%hues) * 360 / hues)
	return []byte(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 48 48"><rect width="48" height="48" rx="10" fill="hsl(` + hue +
		`,45%,32%)"/><text x="24" y="25" fill="#fff" font-family="system-ui,sans-serif" font-size="24" font-weight="600" text-anchor="middle" dominant-baseline="central">` +
		html.EscapeString(letter) + `</text></svg>`)
}
