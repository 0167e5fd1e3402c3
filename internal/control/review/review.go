// Package review describes a change of the configuration: one short sentence for each
// changed field, warnings about what the change opens, removes or makes unreachable, and
// how many proxies, hosts and connections it affects. Of makes a Review of two
// configurations; the log, the command diff and the API show the same sentences.
//
// It is pure: it opens nothing, starts nothing and logs nothing. Sentences contain no
// secrets: no password hashes, no credentials, and no values of ${…}. The result is
// limited, however many objects a change affects.
package review

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"headgate/internal/config"
	"headgate/internal/config/diff"
	"headgate/internal/schema"
)

// Severity is how much attention a sentence wants.
type Severity string

// The severities.
const (
	// Info is what changes.
	Info Severity = "info"
	// Warning is what may not be meant: a host that is lost, a limit that is gone.
	Warning Severity = "warning"
	// Danger is what opens something that was closed.
	Danger Severity = "danger"
)

// Note is the code of a sentence that was made of a note about the configuration.
const Note = "note"

// rank orders severities.
func (s Severity) rank() int {
	switch s {
	case Danger:
		return 2
	case Warning:
		return 1
	}
	return 0
}

func worst(a, b Severity) Severity {
	if b.rank() > a.rank() {
		return b
	}
	return a
}

// The bounds of a review.
const (
	// MaxObjects is the largest number of objects that are described one by one.
	MaxObjects = 100
	// MaxSentences is the largest number of sentences of one object.
	MaxSentences = 50
	// maxNames bounds the names in one sentence, and the hosts of an object.
	maxNames = 5
)

// Review is what a change does, in words and as data.
type Review struct {
	// Summary is the change in one line: "1 port and 2 proxies change; 3 hosts are
	// affected; 4 connections will drain". Where nothing changes it says so.
	Summary string `json:"summary"`
	// Severity is the worst of all sentences, also of those left out.
	Severity Severity `json:"severity"`
	// Impact counts what is affected.
	Impact Impact `json:"impact"`
	// Objects are the objects with the effects on them, by kind and name: all of them, or
	// MaxObjects of those with the most severe sentences.
	Objects []Object `json:"objects"`
	// More counts the objects that were left out.
	More []More `json:"more,omitempty"`
}

// Impact counts what a change affects.
type Impact struct {
	// Proxies are those that change, or whose policies or defaults do.
	Proxies int `json:"proxies"`
	// Hosts are the virtual hosts of these proxies.
	Hosts int `json:"hosts"`
	// NeedPassword are the hosts that ask for a password from now on, on some of their
	// routes or all.
	NeedPassword int `json:"need_password,omitempty"`
	// NeedNoPassword are the hosts that no longer do.
	NeedNoPassword int `json:"need_no_password,omitempty"`
	// Connections are open ones that will drain. It is absent if there is no running
	// process.
	Connections *int `json:"connections,omitempty"`
}

// Object is one object with the sentences about it.
type Object struct {
	// Kind is the name of its kind: "proxies".
	Kind string `json:"kind"`
	// Name is its name, "" for a single object such as admin.
	Name string `json:"name,omitempty"`
	// Title is what people call it: "proxy shop", "access log".
	Title string `json:"title"`
	// Change is added, changed or removed; "" for an object that is the same itself and
	// is warned about.
	Change diff.Verb `json:"change,omitempty"`
	// Severity is the worst of its sentences.
	Severity Severity `json:"severity"`
	// Origin is where the object comes from, or came from if it was removed.
	Origin *config.Origin `json:"origin,omitempty"`
	// Hosts are the first of the virtual hosts that are affected, HostCount is how many
	// there are.
	Hosts []string `json:"hosts,omitempty"`
	// HostCount is how many virtual hosts are affected.
	HostCount int `json:"host_count,omitempty"`
	// Sentences describe the effects on it, the warnings last; More were omitted.
	Sentences []Sentence `json:"sentences"`
	// More is how many sentences were omitted.
	More int `json:"more,omitempty"`
}

// Sentence is one effect on an object.
type Sentence struct {
	// Severity is info, warning or danger.
	Severity Severity `json:"severity"`
	// Code names what a warning is about: "host_lost". It is "" for what changes.
	Code string `json:"code,omitempty"`
	// Path is the field in the object, "" for the object as a whole.
	Path string `json:"path,omitempty"`
	// Text is the sentence with the object it is about: "proxy shop: route /api gets
	// server http://10.0.0.7:3000, weight 1".
	Text string `json:"text"`
	// Remedy is what to do about it, "" if there is nothing to add.
	Remedy string `json:"remedy,omitempty"`
}

// More counts objects of a kind that were left out.
type More struct {
	// Kind is the name of the kind.
	Kind string `json:"kind"`
	// Change is added, changed or removed.
	Change diff.Verb `json:"change,omitempty"`
	// Count is how many there are.
	Count int `json:"count"`
}

// Running is what only the running process knows. It is optional.
type Running struct {
	// Connections counts the open connections of ports, TCP proxies and UDP proxies.
	Connections map[Address]int
	// SelfSigned are the hosts by port whose clients will get a self-signed
	// certificate, and SelfSignedBefore those who get it now.
	SelfSigned, SelfSignedBefore map[string][]string
	// Operator is the address that the change comes from; not valid if it is not known.
	Operator netip.Addr
	// Refusing are the routes by proxy whose ip_filter will refuse that address, and
	// RefusingBefore those that refuse it now.
	Refusing, RefusingBefore map[string][]string
	// Passkeys returns how many passkeys users of the console have at a host name; nil if that is
	// not known.
	Passkeys func(host string) int
}

// Address is the kind and the name of an object.
type Address struct{ Kind, Name string }

// Change is what a review is made of.
type Change struct {
	// Before and After are the configurations, nil for an empty one.
	Before, After *config.Config
	// Difference is their difference; if it is nil, it is computed.
	Difference *diff.Difference
	// Notes are the notes of After. Those of changed objects become warnings.
	Notes []schema.Problem
	// Running is what the running process knows, nil if there is none.
	Running *Running
}

// Of returns the review of a change. It keeps nothing of it.
func Of(c Change) *Review {
	if c.Before == nil {
		c.Before = config.New()
	}
	if c.After == nil {
		c.After = config.New()
	}
	if c.Difference == nil {
		c.Difference = diff.Compare(c.Before, c.After)
	}
	r := &reviewer{Change: c, objects: make(map[Address]*Object, len(c.Difference.Objects)), touched: map[string]bool{}}
	r.describe()      // one sentence for each field, or for an object that comes or goes
	r.touch()         // the proxies that act otherwise
	r.judgeVisitors() // what features mean for visitors
	r.judgeFields()   // what one field opens
	r.judgeAccess()   // who is let in
	r.judgeHosts()    // who answers
	r.judgeRules()    // what can never match
	r.judgePorts()    // what drains, and who has no certificate
	r.takeNotes()
	return r.result()
}

// reviewer makes one review.
type reviewer struct {
	Change
	objects map[Address]*Object
	order   []Address
	// touched are the proxies that are another themselves, or by policies or defaults.
	touched map[string]bool
	// needs and frees are hosts that ask for a password now, and no longer.
	needs, frees map[string]bool
	drains       int
}

// object returns the object at an address, a new one if it has no sentence yet.
func (r *reviewer) object(at Address) *Object {
	o := r.objects[at]
	if o == nil {
		k := config.KindOf(at.Kind)
		title := k.Noun
		if !k.Single {
			title += " " + at.Name
		}
		o = &Object{Kind: at.Kind, Name: at.Name, Title: title, Severity: Info}
		r.objects[at] = o
		r.order = append(r.order, at)
	}
	return o
}

// addSentence adds a sentence. Text goes on after the object's title: " is removed", ": route
// /api gets …".
func (r *reviewer) addSentence(at Address, s Sentence) {
	o := r.object(at)
	o.Severity = worst(o.Severity, s.Severity)
	s.Text = o.Title + s.Text
	o.Sentences = append(o.Sentences, s)
}

// warn adds a warning with a code.
func (r *reviewer) warn(at Address, severity Severity, code, path, remedy, format string, args ...any) {
	r.addSentence(at, Sentence{Severity: severity, Code: code, Path: path, Text: fmt.Sprintf(format, args...), Remedy: remedy})
}

// result bounds what was said and counts what is affected.
func (r *reviewer) result() *Review {
	out := &Review{Severity: Info, Objects: []Object{}, Impact: r.impact()}
	kinds := map[string]int{}
	for i, k := range config.Kinds() {
		kinds[k.Name] = i
	}
	inOrder := func(a, b Address) int {
		return cmp.Or(cmp.Compare(kinds[a.Kind], kinds[b.Kind]), cmp.Compare(a.Name, b.Name))
	}
	slices.SortFunc(r.order, inOrder)
	for _, at := range r.order {
		out.Severity = worst(out.Severity, r.objects[at].Severity)
	}
	out.Summary = r.summary(out.Impact)
	shown := r.order
	if len(shown) > MaxObjects {
		byWeight := slices.Clone(shown)
		slices.SortStableFunc(byWeight, func(a, b Address) int {
			return cmp.Compare(r.objects[b].Severity.rank(), r.objects[a].Severity.rank())
		})
		shown = byWeight[:MaxObjects]
		out.More = r.count(byWeight[MaxObjects:])
		slices.SortFunc(shown, inOrder)
	}
	for _, at := range shown {
		o := r.objects[at]
		o.bound()
		o.Origin = r.origin(at)
		r.addHosts(o)
		out.Objects = append(out.Objects, *o)
	}
	return out
}

// origin returns where an object is defined, nil if unknown.
func (r *reviewer) origin(at Address) *config.Origin {
	for _, c := range []*config.Config{r.After, r.Before} {
		if origin, ok := c.Origin(at.Kind, at.Name); ok {
			return &origin
		}
	}
	return nil
}

// bound leaves out sentences, those that want the least attention first.
func (o *Object) bound() {
	if o.More = len(o.Sentences) - MaxSentences; o.More <= 0 {
		o.More = 0
	} else {
		kept := slices.Clone(o.Sentences)
		slices.SortStableFunc(kept, func(a, b Sentence) int { return cmp.Compare(b.Severity.rank(), a.Severity.rank()) })
		o.Sentences = kept[:MaxSentences]
	}
	slices.SortStableFunc(o.Sentences, func(a, b Sentence) int { return cmp.Compare(a.Severity.rank(), b.Severity.rank()) })
}

// count counts objects that are left out, kind by kind.
func (r *reviewer) count(left []Address) []More {
	counts := map[More]int{}
	for _, at := range left {
		counts[More{Kind: at.Kind, Change: r.objects[at].Change}]++
	}
	var out []More
	for _, k := range config.Kinds() {
		for _, verb := range []diff.Verb{diff.Added, diff.Changed, diff.Removed, ""} {
			m := More{Kind: k.Name, Change: verb}
			if m.Count = counts[m]; m.Count > 0 {
				out = append(out, m)
			}
		}
	}
	return out
}

// Lines returns the sentences as lines, at most n of them; the last one then says how
// many more there are. Warnings begin with their severity.
func (r *Review) Lines(n int) []string {
	var lines []string
	left := 0
	for i := range r.Objects {
		o := &r.Objects[i]
		for _, s := range o.Sentences {
			if len(lines) < n {
				lines = append(lines, s.Line())
			} else {
				left++
			}
		}
		left += o.More
	}
	objects := 0
	for _, m := range r.More {
		objects += m.Count
	}
	var more []string
	if objects > 0 {
		more = append(more, "and "+counted(objects, "more object", "more objects"))
	}
	if left > 0 {
		more = append(more, "and "+counted(left, "more sentence", "more sentences"))
	}
	if len(more) > 0 {
		lines = append(lines, strings.Join(more, ", "))
	}
	return lines
}

// Line returns the sentence as a line of text.
func (s Sentence) Line() string {
	line := s.Text
	if s.Severity != Info {
		line = string(s.Severity) + ": " + line
	}
	if s.Remedy != "" {
		line += "; " + s.Remedy
	}
	return line
}
