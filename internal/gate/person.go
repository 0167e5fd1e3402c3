package gate

import (
	"fmt"
	"strings"

	"headgate/internal/gate/people"
	"headgate/internal/gate/provider"
)

// Person is a person who has signed in. It is immutable.
type Person struct {
	// ID identifies the person: PROVIDER/SUBJECT.
	ID string `json:"id"`
	// Provider is the name of the provider.
	Provider string `json:"provider"`
	// User is the unique name that servers get.
	User string `json:"user"`
	// Name is for people to read.
	Name string `json:"name,omitempty"`
	// Email is the address, "" unless it counts.
	Email string `json:"email,omitempty"`
	// Groups are PROVIDER/GROUP.
	Groups []string `json:"groups,omitempty"`

	groups string // joined
}

// newPerson returns the person that a provider has identified.
func newPerson(name string, id provider.Identity) *Person {
	p := &Person{ID: name + "/" + id.Subject, Provider: name, User: id.User, Name: id.Name, Email: id.Email}
	for _, g := range id.Groups {
		p.Groups = append(p.Groups, name+"/"+g)
	}
	if p.User == "" {
		p.User = p.Email
	}
	if p.User == "" {
		p.User = p.ID
	}
	return p.ready()
}

// ready computes what follows from the exported fields.
func (p *Person) ready() *Person {
	p.groups = strings.Join(p.Groups, ",")
	return p
}

// domain returns that of the address.
func (p *Person) domain() string { return p.Email[strings.LastIndexByte(p.Email, '@')+1:] }

// Title returns the best text for people.
func (p *Person) Title() string {
	switch {
	case p.Name != "":
		return p.Name
	case p.Email != "":
		return p.Email
	}
	return p.User
}

// GroupsField returns the groups as servers get them.
func (p *Person) GroupsField() string { return p.groups }

// Allow is the compiled list of people who may enter. It is immutable.
type Allow struct {
	people, groups, domains, tokens names
}

// names is a set of names. Most lists have a handful: comparing those is faster than hashing.
type names struct {
	all  []string
	many map[string]bool // all of them, nil for a short list
}

// maxCompared is the longest list whose names are compared one after the other.
const maxCompared = 8

func (n *names) add(name string) {
	n.all = append(n.all, name)
	switch {
	case n.many != nil:
		n.many[name] = true
	case len(n.all) > maxCompared:
		n.many = make(map[string]bool, len(n.all))
		for _, name := range n.all {
			n.many[name] = true
		}
	}
}

func (n *names) has(name string) bool {
	if n.many != nil {
		return n.many[name]
	}
	for _, one := range n.all {
		if one == name {
			return true
		}
	}
	return false
}

// first returns the index of the first of some names that is in the set, -1 for none.
func (n *names) first(of []string) int {
	if len(n.all) == 0 {
		return -1
	}
	for i, name := range of {
		if n.has(name) {
			return i
		}
	}
	return -1
}

// The kinds of entries in a list of people.
const (
	kindPerson = "person:"
	kindGroup  = "group:"
	kindDomain = "domain:"
	kindToken  = "token:"
)

// Entry is one entry of a list of people.
type Entry struct {
	// Kind is person, group, domain or token.
	Kind string
	// Name is what it names.
	Name string
	// Provider is the provider of a group, or of a person that is written as
	// PROVIDER/SUBJECT; "" otherwise.
	Provider string
}

// ParseEntry reads an entry: group:PROVIDER/GROUP, person:ADDRESS, person:PROVIDER/SUBJECT
// domain:NAME or token:NAME; group:NAME and person:NAME are of people kept by headgate.
func ParseEntry(text string) (Entry, error) {
	kind, name, ok := strings.Cut(text, ":")
	if !ok || name == "" || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }) {
		return Entry{}, fmt.Errorf("%q is not a group, person, domain or token", text)
	}
	e := Entry{Kind: kind, Name: name}
	switch kind + ":" {
	case kindPerson:
		if first, _, found := strings.Cut(name, "/"); found && validProvider(first) {
			e.Provider = first
		} else if strings.Contains(name, "@") {
			e.Name = strings.ToLower(name)
		} else if people.ValidName(name) {
			e.Name, e.Provider = people.Provider+"/"+name, people.Provider
		} else {
			return Entry{}, fmt.Errorf("%q is neither an address nor PROVIDER/ID", name)
		}
	case kindGroup:
		first, own, found := strings.Cut(name, "/")
		if e.Provider = first; found && first != people.Provider {
			break
		}
		if !found {
			own = name
		}
		if e.Name, e.Provider = own, people.Provider; !people.ValidName(own) {
			return Entry{}, fmt.Errorf("group %q names no provider", name)
		}
	case kindDomain:
		e.Name = strings.ToLower(name)
		if strings.ContainsAny(name, "@/* ") {
			return Entry{}, fmt.Errorf("%q is not a domain", name)
		}
	case kindToken:
		if !ValidName(name) {
			return Entry{}, fmt.Errorf("%q is not the name of a token", name)
		}
	default:
		return Entry{}, fmt.Errorf("%q must be group:, person:, domain: or token: with a name", text)
	}
	return e, nil
}

// ParseAllow compiles a list of people.
func ParseAllow(entries []string) (*Allow, error) {
	a := &Allow{}
	for _, text := range entries {
		e, err := ParseEntry(text)
		if err != nil {
			return nil, err
		}
		switch e.Kind + ":" {
		case kindPerson:
			a.people.add(e.Name)
		case kindGroup:
			a.groups.add(e.Name)
		case kindDomain:
			a.domains.add(e.Name)
		case kindToken:
			a.tokens.add(e.Name)
		}
	}
	return a, nil
}

// Has reports whether a person may enter.
func (a *Allow) Has(p *Person) bool {
	return a.people.has(p.ID) || p.Email != "" && (a.people.has(p.Email) || len(a.domains.all) > 0 && a.domains.has(p.domain())) || a.groups.first(p.Groups) >= 0
}

// HasToken reports whether a token is in the list, by its name or for its person.
func (a *Allow) HasToken(t *Token) bool {
	return a.tokens.has(t.Name) || t.Person != nil && a.Has(t.Person)
}
