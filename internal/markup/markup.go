// Package markup builds pages of HTML from Go values. golang.org/x/net/html renders them and
// escapes texts and the values of attributes, so that no text of a client can become markup.
//
// html/template calls methods by name, for which the linker keeps every exported method of
// the program; without it, the binary is 4.7 MB smaller (docs/performance.md).
package markup

import (
	"bytes"
	"io"
	"net/url"
	"slices"

	"golang.org/x/net/html"
)

// Part is a part of an element: an Element, Text, Attr or List.
type Part interface{ addTo(*html.Node) }

// Element is an element with its attributes and content.
type Element struct{ node *html.Node }

// El returns an element with its attributes and content, in the order of the parts.
func El(name string, parts ...Part) Element {
	e := Element{&html.Node{Type: html.ElementNode, Data: name}}
	List(parts).addTo(e.node)
	return e
}

func (e Element) addTo(n *html.Node) { n.AppendChild(e.node) }

// Text is a text. It is escaped.
type Text string

// addTo panics in a style or a script, where nothing is escaped.
func (t Text) addTo(n *html.Node) {
	if n.Data == "style" || n.Data == "script" {
		panic("markup: a text in " + n.Data + " is not escaped: use Style or Script")
	}
	n.AppendChild(&html.Node{Type: html.TextNode, Data: string(t)})
}

// Attr is an attribute.
type Attr struct{ name, value string }

func (a Attr) addTo(n *html.Node) { n.Attr = append(n.Attr, html.Attribute{Key: a.name, Val: a.value}) }

// At returns an attribute that is not a URL. Its value is escaped.
func At(name, value string) Attr { return Attr{name, value} }

// Class returns the attribute class.
func Class(names string) Attr { return Attr{"class", names} }

// Flag returns an attribute without a value, such as hidden.
func Flag(name string) Attr { return Attr{name, ""} }

// Href returns the attribute href. A URL of a scheme that can run a script or hold a page,
// such as javascript: or data:, becomes "#".
func Href(to string) Attr {
	u, err := url.Parse(to)
	if err != nil || !slices.Contains([]string{"", "http", "https", "otpauth"}, u.Scheme) {
		to = "#"
	}
	return Attr{"href", to}
}

// List is several parts, or none.
type List []Part

func (l List) addTo(n *html.Node) {
	for _, p := range l {
		p.addTo(n)
	}
}

// If returns the parts if the condition holds, else none.
func If(condition bool, parts ...Part) List {
	if condition {
		return parts
	}
	return nil
}

// Each returns a part for each value.
func Each[T any](values []T, part func(T) Part) List {
	all := make(List, len(values))
	for i, v := range values {
		all[i] = part(v)
	}
	return all
}

// Table returns a table whose columns have these headings.
func Table(headings []string, rows List) Element {
	return El("table",
		El("thead", El("tr", Each(headings, func(h string) Part { return El("th", At("scope", "col"), Text(h)) }))),
		El("tbody", rows))
}

// Row returns a row of a table with one part for each cell.
func Row(cells ...Part) Element {
	return El("tr", Each(cells, func(c Part) Part { return El("td", c) }))
}

// Style returns a style sheet, which is rendered as it is: it has nothing of a client.
func Style(sheet string) Element { return verbatim("style", sheet) }

// Script returns a script, which is rendered as it is: it has nothing of a client.
func Script(source string) Element { return verbatim("script", source) }

func verbatim(name, text string) Element {
	e := El(name)
	e.node.AppendChild(&html.Node{Type: html.TextNode, Data: text})
	return e
}

// Render writes a page whose language is a tag such as "en" (BCP 47). The error is that of w.
func Render(w io.Writer, language string, head, body List) error {
	doc := &html.Node{Type: html.DocumentNode}
	doc.AppendChild(&html.Node{Type: html.DoctypeNode, Data: "html"})
	head = append(List{
		El("meta", At("charset", "utf-8")),
		El("meta", At("name", "viewport"), At("content", "width=device-width, initial-scale=1")),
	}, head...)
	El("html", At("lang", language), El("head", head...), El("body", body...)).addTo(doc)
	var b bytes.Buffer
	if err := html.Render(&b, doc); err != nil {
		panic("markup: " + err.Error()) // void elements have no content, and a buffer takes all
	}
	_, err := w.Write(b.Bytes())
	return err
}
