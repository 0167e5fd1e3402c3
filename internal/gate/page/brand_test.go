package page

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"headgate/internal/exchange"
)

var mainColors = regexp.MustCompile(`--main:(#[0-9a-f]{6})`)

// Whatever color an operator chooses, text and buttons have the contrast of WCAG.
func TestABrandIsReadable(t *testing.T) {
	colors := []color{white, black, {1, 1, 0}, {0, 0, 1}, {1, 0, 0}, {0.5, 0.5, 0.5}}
	for range 1000 {
		colors = append(colors, color{rand.Float64(), rand.Float64(), rand.Float64()})
	}
	for _, c := range colors {
		c, _ = parseColor(c.String()) // as it is written
		b, err := NewBrand(c.String(), nil)
		if err != nil {
			t.Fatal(err)
		}
		found := mainColors.FindAllStringSubmatch(b.style, -1)
		if len(found) != 2 {
			t.Fatalf("%s: %s", c, b.style)
		}
		const rounding = 0.1
		if on := c.on(); c.contrast(on) < readable-rounding || !strings.Contains(b.style, "--fill:"+c.String()+";--on:"+on.String()) {
			t.Errorf("%s has %.2f under the text of buttons: %s", c, c.contrast(on), b.style)
		}
		for i, card := range []color{white, darkCard} {
			if main, _ := parseColor(found[i][1]); main.contrast(card) < readable-rounding {
				t.Errorf("%s: %s has %.2f on the card", c, main, main.contrast(card))
			}
		}
	}
	if b, _ := NewBrand("#1457b8", nil); !strings.Contains(b.style, "--main:#1457b8") {
		t.Errorf("a readable color was changed: %s", b.style)
	}
}

func TestABrandIsChecked(t *testing.T) {
	for _, text := range []string{"red", "#12345", "#1234567", "#12345g", "#fff", "#123456;}"} {
		if err := CheckColor(text); err == nil {
			t.Errorf("%q is a color", text)
		}
	}
	for data, good := range map[string]bool{
		"\x89PNG\r\n\x1a\n": true, "\xff\xd8\xff": true, "GIF89a": true, "RIFF\x00\x00\x00\x00WEBPVP": true, "<svg xmlns=\"x\"/>": true, "<?xml version=\"1.0\"?>\n<svg/>": true,
		"<html>": false, "hello": false, "<?xml version=\"1.0\"?><html/>": false, "%PDF-1.7": false,
	} {
		if _, err := NewBrand("", []byte(data)); (err == nil) != good {
			t.Errorf("%q: %v", data, err)
		}
	}
	if b, err := NewBrand("", nil); b != nil || err != nil {
		t.Errorf("without settings: %v, %v", b, err)
	}
}

// The policy of a page lets the browser show its logo and color, and nothing else.
func TestABrandIsInThePolicy(t *testing.T) {
	b, err := NewBrand("#336699", []byte("<svg/>"))
	if err != nil {
		t.Fatal(err)
	}
	v := View{Texts: Choose(""), Site: "Example Ltd.", Title: "Sign in", Brand: b}
	a := v.Answer(exchange.None, false)
	var policy string
	for _, f := range a.Fields {
		if f.Name == "Content-Security-Policy" {
			policy = f.Value
		}
	}
	if !strings.Contains(policy, "img-src data:") || !strings.Contains(policy, b.hash) || strings.Contains(policy, "unsafe") {
		t.Error(policy)
	}
	if html := string(a.Body); !strings.Contains(html, `<img class="logo" src="data:image/svg+xml;base64,`) || !strings.Contains(html, b.style) {
		t.Error(html)
	}
	v.Brand = nil
	a = v.Answer(exchange.None, false)
	for _, f := range a.Fields {
		if strings.Contains(f.Value, "img-src") {
			t.Error(f.Value)
		}
	}
}
