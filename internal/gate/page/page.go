// Package page makes the pages that people see when they sign in: plain HTML that works
// without scripts, with a strict policy for what a browser may load, in the language that
// the browser prefers. text.go has the texts.
package page

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"sync"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// View is what is on a page.
type View struct {
	// Texts are those of the language.
	Texts *Texts
	// Site is the name of the whole, at the top.
	Site string
	// Brand is the look of the operator, nil for the usual one.
	Brand *Brand
	// Title is the heading.
	Title string
	// Lines are paragraphs.
	Lines []string
	// Error is a message that something failed, "" for none.
	Error string
	// Links lead on, the first is the most likely one.
	Links []Link
	// Forms are buttons that change something, with or without fields to fill in.
	Forms []Form
	// Below are links that come after the forms.
	Below []Link
	// Sites are the applications that a person may open, Tiles the same with their icons.
	Sites []Link
	Tiles []Tile
	// Passkeys is whether the page has the script for passkeys.
	Passkeys bool
	// Codes are shown to be written down.
	Codes []string
	// Refresh is an address that the browser goes to at once, "" for none.
	Refresh string
	// NewWindow opens the links in windows of their own.
	NewWindow bool
}

// Link is a link.
type Link struct{ URL, Label string }

// Tile is a link to an application, with its host as the label.
type Tile struct {
	Link
	// Name is what people call the application.
	Name string
	// Icon is the path of its icon.
	Icon string
	// Problem is why it cannot be used, "" if it can.
	Problem string
}

// Form is a form with a button.
type Form struct {
	// Action is the path that it is posted to.
	Action string
	// Fields are hidden.
	Fields []Field
	// Ask is what the browser does for a passkey when the form is sent: get or create; "" for
	// other forms. Options are for the browser, as JSON. Without scripts the form is hidden.
	Ask, Options string
	// Inputs are to be filled in.
	Inputs []Input
	// Secret is that of a new authenticator, and URI what its QR code has; "" for none.
	Secret, URI string
	// Button is the text on the button; Plain is whether it is not the likely one.
	Button string
	Plain  bool
}

// Input is a field to fill in.
type Input struct {
	// Name, Type and Value are those of the element; a type of "" is text.
	Name, Type, Value string
	// Label is above the field, Hint below it.
	Label, Hint string
	// Autocomplete is what browsers and password managers fill in.
	Autocomplete string
	// Numeric is whether phones show digits first.
	Numeric bool
	// Fixed is whether the value cannot be changed.
	Fixed bool
	// Focus is whether the field is the first to be filled in.
	Focus bool
}

// Field is a field of a form.
type Field struct{ Name, Value string }

//go:embed page.css
var style string

//go:embed passkey.js
var script string

// policies are the values of Content-Security-Policy.
var policies = sync.OnceValue(func() (p struct{ page, framed, passkeys string }) {
	sum := sha256.Sum256([]byte(style))
	p.framed = "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; form-action 'self'; base-uri 'none'"
	p.page = p.framed + "; frame-ancestors 'none'"
	sum = sha256.Sum256([]byte(script))
	p.passkeys = p.page + "; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	return p
})

// Answer returns the page as an answer with the status of a reason, 200 for None. Framed is
// whether it may be shown in a frame of another page. Fields are added.
func (v *View) Answer(reason exchange.Reason, framed bool, fields ...header.Field) *exchange.Answer {
	status := reason.Status()
	if reason == exchange.None {
		status = 200
	}
	policy := policies().page
	if v.Passkeys {
		policy = policies().passkeys
	}
	if framed {
		policy = policies().framed
	}
	policy = v.allowImages(v.Brand.allowStyle(policy))
	return &exchange.Answer{
		Reason: reason, Status: status, Body: v.HTML(), ContentType: "text/html; charset=utf-8",
		Fields: append(fields,
			NoStore(),
			Plain("Content-Security-Policy", policy),
			Plain("Content-Language", v.Texts.Code),
			Plain("X-Content-Type-Options", "nosniff"),
			// Forms need their Origin, which browsers leave out with no-referrer.
			Plain("Referrer-Policy", "same-origin"),
			Plain("Vary", "Accept-Language, Cookie")),
	}
}

// allowImages returns the policy with the sources of the images on the page.
func (v *View) allowImages(policy string) string {
	logo, icons := v.Brand != nil && v.Brand.logo != "", len(v.Tiles) > 0
	switch {
	case logo && icons:
		return policy + "; img-src 'self' data:"
	case icons:
		return policy + "; img-src 'self'"
	case logo:
		return policy + "; img-src data:"
	}
	return policy
}

// NoStore is the field that keeps a response out of all caches.
func NoStore() header.Field {
	return header.Field{ID: header.CacheControl, Name: header.CacheControl.String(), Value: "no-store"}
}

// Plain is a field.
func Plain(name, value string) header.Field {
	return header.Field{ID: header.Lookup(name), Name: name, Value: value}
}

// Redirect returns an answer that leads elsewhere by GET.
func Redirect(location string, fields ...header.Field) *exchange.Answer {
	return &exchange.Answer{Reason: exchange.Redirected, Status: 303, Fields: append(fields, Plain("Location", location), NoStore(), Plain("Referrer-Policy", "no-referrer"))}
}
