package page

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
)

// Brand is how an operator makes the pages look: a logo and a color. It is immutable. A nil
// Brand is the usual look.
type Brand struct {
	logo  string // as a data URL, "" for none
	style string // after the usual one, "" for none
	hash  string // of style, for the policy
}

// errNotImage is of a logo that is none.
var errNotImage = errors.New("the file is not a PNG, JPEG, WebP, GIF or SVG image")

// NewBrand returns the look with a color, #rrggbb or "", and a logo, which may be empty.
func NewBrand(mainColor string, logo []byte) (*Brand, error) {
	b := &Brand{}
	if len(logo) > 0 {
		kind, err := ImageType(logo)
		if err != nil {
			return nil, err
		}
		b.logo = "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(logo)
	}
	if mainColor != "" {
		main, err := parseColor(mainColor)
		if err != nil {
			return nil, err
		}
		b.style = main.style()
		sum := sha256.Sum256([]byte(b.style))
		b.hash = " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	if *b == (Brand{}) {
		return nil, nil
	}
	return b, nil
}

// allowStyle returns the policy of a page with the look.
func (b *Brand) allowStyle(policy string) string {
	if b == nil {
		return policy
	}
	return strings.Replace(policy, "; form-action", b.hash+"; form-action", 1)
}

// ImageType returns the media type of an image that browsers show: PNG, JPEG, WebP, GIF or SVG.
func ImageType(data []byte) (string, error) {
	switch kind := http.DetectContentType(data); kind {
	case "image/png", "image/jpeg", "image/webp", "image/gif":
		return kind, nil
	}
	// Inside of an img element an SVG runs no scripts and loads nothing.
	start := bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	if bytes.HasPrefix(start, []byte("<svg")) || bytes.HasPrefix(start, []byte("<?xml")) && bytes.Contains(start, []byte("<svg")) {
		return "image/svg+xml", nil
	}
	return "", errNotImage
}

// color is a color of sRGB; each part is 0 to 1.
type color [3]float64

// parseColor reads #rrggbb.
func parseColor(text string) (c color, err error) {
	if len(text) != 7 || text[0] != '#' {
		return c, fmt.Errorf("%q is not a color such as #1457b8", text)
	}
	for i := range c {
		part, err := strconv.ParseUint(text[1+2*i:3+2*i], 16, 8)
		if err != nil {
			return c, fmt.Errorf("%q is not a color such as #1457b8", text)
		}
		c[i] = float64(part) / 255
	}
	return c, nil
}

// CheckColor reports whether a text is a color that NewBrand reads.
func CheckColor(text string) error {
	_, err := parseColor(text)
	return err
}

func (c color) String() string {
	return fmt.Sprintf("#%02x%02x%02x", int(math.Round(c[0]*255)), int(math.Round(c[1]*255)), int(math.Round(c[2]*255)))
}

// luminance is the relative luminance of WCAG 2.2.
func (c color) luminance() float64 {
	linear := func(v float64) float64 {
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(c[0]) + 0.7152*linear(c[1]) + 0.0722*linear(c[2])
}

// contrast is the contrast ratio of WCAG 2.2, 1 to 21.
func (c color) contrast(with color) float64 {
	a, b := c.luminance(), with.luminance()
	return (max(a, b) + 0.05) / (min(a, b) + 0.05)
}

// readable is the contrast that text needs (WCAG 2.2, success criterion 1.4.3).
const readable = 4.5

// The colors of cards in page.css, and of text on buttons.
var (
	white    = color{1, 1, 1}
	black    = color{}
	darkCard = color{0x18 / 255.0, 0x20 / 255.0, 0x2a / 255.0}
)

// brandStep is how much darker or lighter each attempt of towards is.
const brandStep = 0.02

// towards returns the nearest color on the way to another that is readable on a card.
func (c color) towards(end, card color) color {
	for part := 0.0; part <= 1; part += brandStep {
		var mixed color
		for i := range mixed {
			mixed[i] = c[i] + (end[i]-c[i])*part
		}
		if mixed.contrast(card) >= readable {
			return mixed
		}
	}
	return end
}

// style is a style sheet with the color for both color schemes. Buttons are filled with it as it
// is; for links and edges it is made darker or lighter where it would not be readable on the page.
func (c color) style() string {
	return fmt.Sprintf(":root{--fill:%s;--on:%s;--main:%s}@media(prefers-color-scheme:dark){:root{--main:%s}}", c, c.on(), c.towards(black, white), c.towards(white, darkCard))
}

// on returns the color of text on a button of this color.
func (c color) on() color {
	if c.contrast(white) >= c.contrast(black) {
		return white
	}
	return black
}
