// Package rules makes routes of ordered rules. Other proxies evaluate a list of rules
// one after the other; headgate uses the route with the longest path and the most
// matchers. Routes makes the routes with the same result.
//
// An Atom is one test of a request, a Condition joins atoms, a Region is the requests of
// a route. An importer collects the atoms of its rules, and returns the outcome for the
// requests of a region in a function. The package knows no proxy and no syntax of one.
package rules

import (
	"regexp"
	"slices"
	"strings"
)

// Kind is what an atom tests.
type Kind uint8

// The kinds. A route can be chosen by those from Path to Query.
const (
	Always Kind = iota // nothing: it is true
	Host               // the host
	Path               // the path is at or below a prefix
	Method             // the method
	Header             // a header
	Query              // a parameter of the query
	TLS                // the client came over TLS
	Port               // the number of the port
	Client             // the client's address
	Rate               // how many requests the client has made
	Login              // the client has signed in
	SNI                // the name in TLS, of connections that are passed on
)

// Atom is one test of a request. It is not changed once it was used.
type Atom struct {
	Kind Kind
	// Name is that of a header, a parameter or a list of users.
	Name string
	// Value is a host, path, method, value, port, address or number.
	Value string
	// Regex is the expression that a header or parameter has to match. With neither it
	// has to be there.
	Regex string
	// Pattern is the expression of hosts.
	Pattern *regexp.Regexp

	key   string         // made when it is needed, as
	regex *regexp.Regexp // is the compiled Regex
}

// Key identifies atoms.
func (a *Atom) Key() string {
	if a.key == "" {
		a.key = strings.Join([]string{string('a' + rune(a.Kind)), strings.ToLower(a.Name), a.Value, a.Regex}, "\x00")
	}
	return a.key
}

// matches reports whether the expression matches a value. One that cannot be used
// matches nothing.
func (a *Atom) matches(value string) bool {
	if a.regex == nil {
		var err error
		if a.regex, err = regexp.Compile(a.Regex); err != nil {
			return false
		}
	}
	return a.regex.MatchString(value)
}

// Routes reports whether a route can be chosen by the atom.
func (a *Atom) Routes() bool { return a.Kind >= Path && a.Kind <= Query }

// implies reports whether whatever has a has b: a value is there, and may match an
// expression.
func (a *Atom) implies(b *Atom) bool {
	switch {
	case b.Value == "" && b.Regex == "", a.Key() == b.Key():
		return true
	case a.Value != "" && b.Regex != "":
		return b.matches(a.Value)
	}
	return false
}

// excludes reports whether nothing that has a has b.
func (a *Atom) excludes(b *Atom) bool {
	switch {
	case a.Value != "" && b.Value != "":
		return a.Value != b.Value
	case a.Value != "" && b.Regex != "":
		return !a.implies(b)
	case a.Regex != "" && b.Value != "":
		return b.excludes(a)
	}
	return false
}

// Literal is an atom or its opposite.
type Literal struct {
	*Atom
	Not bool
}

// Condition is when a rule acts: when all literals of any list hold. One without a
// list never holds.
type Condition struct {
	Any [][]Literal
	// Notes say where headgate's answer differs.
	Notes []string
	// Problem is why it cannot be tested.
	Problem string
}

// maxAlternatives bounds the lists of a condition.
const maxAlternatives = 256

// Holds returns the condition that always holds.
func Holds() Condition { return Condition{Any: [][]Literal{{}}} }

// One returns the condition of one atom.
func One(a *Atom) Condition { return Condition{Any: [][]Literal{{Literal{Atom: a}}}} }

// Impossible returns a condition that cannot be translated.
func Impossible(why string) Condition { return Condition{Problem: why} }

// Noted adds where headgate's answer differs.
func (c Condition) Noted(note string) Condition {
	if note != "" && !slices.Contains(c.Notes, note) {
		c.Notes = append(slices.Clone(c.Notes), note)
	}
	return c
}

func (c Condition) joined(d Condition, any [][]Literal) Condition {
	out := Condition{Any: any, Notes: c.Notes, Problem: c.Problem}
	for _, n := range d.Notes {
		out = out.Noted(n)
	}
	if out.Problem == "" {
		out.Problem = d.Problem
	}
	if len(any) > maxAlternatives && out.Problem == "" {
		out.Problem = "the condition has too many alternatives"
	}
	if out.Problem != "" {
		out.Any = nil
	}
	return out
}

// Or holds where either condition does.
func (c Condition) Or(d Condition) Condition { return c.joined(d, slices.Concat(c.Any, d.Any)) }

// And holds where both conditions do.
func (c Condition) And(d Condition) Condition {
	var any [][]Literal
	if c.Problem == "" && d.Problem == "" && len(c.Any)*len(d.Any) <= 4*maxAlternatives {
		for _, a := range c.Any {
			for _, b := range d.Any {
				if both, ok := meet(a, b); ok {
					any = append(any, both)
				}
			}
		}
	} else {
		return c.joined(d, make([][]Literal, maxAlternatives+1))
	}
	return c.joined(d, any)
}

// meet joins two lists, unless they contradict each other.
func meet(a, b []Literal) ([]Literal, bool) {
	out := slices.Clone(a)
	for _, l := range b {
		i := slices.IndexFunc(out, func(o Literal) bool { return o.Key() == l.Key() })
		switch {
		case i < 0:
			out = append(out, l)
		case out[i].Not != l.Not:
			return nil, false
		}
	}
	return out, true
}

// Not is the opposite.
func (c Condition) Not() Condition {
	out := Condition{Any: [][]Literal{{}}, Notes: c.Notes, Problem: c.Problem}
	for _, list := range c.Any {
		var none Condition
		for _, l := range list {
			l.Not = !l.Not
			none.Any = append(none.Any, []Literal{l})
		}
		out = out.And(none)
	}
	return out
}

// Atoms calls each with every atom of the condition.
func (c Condition) Atoms(each func(*Atom)) {
	for _, list := range c.Any {
		for _, l := range list {
			each(l.Atom)
		}
	}
}

// Within reports whether the condition holds for all of a region in which each of its
// atoms has one answer.
func (c Condition) Within(r Region) bool {
	return slices.ContainsFunc(c.Any, func(list []Literal) bool {
		return !slices.ContainsFunc(list, func(l Literal) bool { return r.Within(l.Atom) == l.Not })
	})
}
