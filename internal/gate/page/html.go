package page

import (
	"bytes"

	m "headgate/internal/markup"
)

// HTML returns the page.
func (v *View) HTML() []byte {
	var b bytes.Buffer
	// A buffer takes everything, so there is no error.
	_ = m.Render(&b, v.Texts.Code, v.head(), m.List{
		m.El("main", m.If(len(v.Tiles) > 0, m.Class("wide")),
			v.logo(),
			m.If(v.Site != "", m.El("p", m.Class("site"), m.Text(v.Site))),
			m.El("h1", m.Text(v.Title)),
			m.If(v.Error != "", m.El("p", m.Class("error"), m.At("role", "alert"), m.Text(v.Error))),
			m.Each(v.Lines, func(line string) m.Part { return m.El("p", m.Text(line)) }),
			list("sites", v.Sites, func(l Link) m.Part { return m.El("a", m.Href(l.URL), m.Text(l.Label)) }),
			list("tiles", v.Tiles, tile),
			list("codes", v.Codes, func(code string) m.Part { return m.El("code", m.Text(code)) }),
			list("actions", v.Links, v.action),
			m.Each(v.Forms, v.form),
			list("actions below", v.Below, func(l Link) m.Part {
				return m.El("a", m.Class("button plain"), m.Href(l.URL), m.Text(l.Label))
			}),
		),
		m.If(v.Passkeys, m.Script(script)),
	})
	return b.Bytes()
}

func (v *View) head() m.List {
	title := v.Title
	if v.Site != "" {
		title += " · " + v.Site
	}
	return m.List{
		m.El("meta", m.At("name", "color-scheme"), m.At("content", "light dark")),
		m.El("meta", m.At("name", "robots"), m.At("content", "noindex")),
		m.If(v.Refresh != "", m.El("meta", m.At("http-equiv", "refresh"), m.At("content", "0; url="+v.Refresh))),
		m.El("title", m.Text(title)),
		m.Style(style),
		v.colors(),
	}
}

// logo is the image of the operator. The name of the whole is beside it as text.
func (v *View) logo() m.Part {
	if v.Brand == nil || v.Brand.logo == "" {
		return m.List{}
	}
	return m.El("img", m.Class("logo"), m.At("src", v.Brand.logo), m.At("alt", ""))
}

// colors is the style sheet of the operator.
func (v *View) colors() m.Part {
	if v.Brand == nil || v.Brand.style == "" {
		return m.List{}
	}
	return m.Style(v.Brand.style)
}

// list is a list of a class, nothing if it has no items.
func list[T any](class string, items []T, content func(T) m.Part) m.List {
	return m.If(len(items) > 0, m.El("ul", m.Class(class),
		m.Each(items, func(item T) m.Part { return m.El("li", content(item)) })))
}

// action is a link that looks like a button.
func (v *View) action(l Link) m.Part {
	return m.El("a", m.Class("button"), m.Href(l.URL),
		m.If(v.NewWindow, m.At("target", "_blank"), m.At("rel", "noopener")), m.Text(l.Label))
}

func (v *View) form(f Form) m.Part {
	return m.El("form", m.At("method", "post"), m.At("action", f.Action),
		m.If(f.Ask != "", m.At("data-passkey", f.Ask), m.Flag("hidden")),
		m.If(f.Options != "", m.At("data-options", f.Options)),
		m.Each(f.Fields, func(h Field) m.Part { return hidden(h.Name, m.At("value", h.Value)) }),
		m.Each(f.Inputs, input),
		m.If(f.Secret != "", v.authenticator(f)),
		m.If(f.Ask != "", hidden("answer"),
			m.El("p", m.Class("error"), m.At("role", "alert"), m.Flag("hidden"), m.Text(v.Texts.PasskeyFailed))),
		m.El("button", m.If(f.Plain, m.Class("plain")), m.Text(f.Button)),
	)
}

func hidden(name string, more ...m.Part) m.Element {
	return m.El("input", m.At("type", "hidden"), m.At("name", name), m.List(more))
}

// input is a field with its label and hint.
func input(in Input) m.Part {
	kind, hint := in.Type, in.Name+"-hint"
	if kind == "" {
		kind = "text"
	}
	return m.El("p",
		m.El("label", m.At("for", in.Name), m.Text(in.Label)),
		m.El("input", m.At("id", in.Name), m.At("name", in.Name), m.At("type", kind),
			m.If(in.Value != "", m.At("value", in.Value)),
			m.If(in.Autocomplete != "", m.At("autocomplete", in.Autocomplete)),
			m.If(in.Numeric, m.At("inputmode", "numeric")),
			m.If(in.Hint != "", m.At("aria-describedby", hint)),
			m.If(in.Focus, m.Flag("autofocus")),
			m.If(in.Fixed, m.Flag("readonly")),
			m.Flag("required"), m.At("autocapitalize", "none"), m.At("spellcheck", "false")),
		m.If(in.Hint != "", m.El("span", m.Class("hint"), m.At("id", hint), m.Text(in.Hint))),
	)
}

// authenticator shows the secret of a new authenticator and has a field for its first code.
func (v *View) authenticator(f Form) m.List {
	return m.List{
		m.El("div", m.Class("authenticator"),
			m.El("p", m.Text(v.Texts.Scan)),
			qrCode(f.URI, v.Texts.QRCode),
			m.El("p", m.El("a", m.Href(f.URI), m.Text(v.Texts.OpenAuthenticator))),
			m.El("p", m.Text(v.Texts.OrEnter+" "), m.El("code", m.Text(spaced(f.Secret)))),
		),
		m.El("p",
			m.El("label", m.At("for", "code"), m.Text(v.Texts.NewCode)),
			m.El("input", m.At("id", "code"), m.At("name", "code"), m.At("autocomplete", "one-time-code"),
				m.At("inputmode", "numeric"), m.Flag("required"))),
	}
}
