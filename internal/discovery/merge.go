package discovery

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"headgate/internal/config"
	"headgate/internal/config/document"
	"headgate/internal/schema"
)

// maxIssues bounds the issues of a merge. More are left out.
const maxIssues = 10_000

// Provider is what one entry of discovery found.
type Provider struct {
	// Name is that of the entry, Bounds are what its objects may use.
	Name   string
	Bounds config.Bounds
	// Objects and Issues are those of its snapshot.
	Objects []*config.Discovered
	Issues  []Issue
}

// Merged is what the documents and all sources say together. It is not changed.
type Merged struct {
	// Config is the configuration: that of the documents itself, if nothing was found.
	Config *config.Config
	// Issues are what of the discovered objects is not in it, or not wholly, and why.
	Issues []Issue
	// Blamed are the objects that were left out because of what came after a merge.
	Blamed map[*config.Discovered]Blame

	known  map[identity]*object
	owners *owners
}

// Blame is why an object is left out although it is good in itself.
type Blame struct {
	Code          Code
	Label         *config.Label
	Message, Hint string
}

// identity is what an object has in common with what it was before it changed.
type identity struct{ provider, kind, name, container string }

// object is a discovered object with what is known of it alone.
type object struct {
	*config.Found
	provider *Provider
	ports    []string
	hosts    []config.VirtualHost // virtual hosts, or names of TLS clients
}

// merge is one under way.
type merge struct {
	out     *Merged
	adder   *config.Adder
	owners  *owners
	claims  map[string][]claim
	blamed  map[*config.Discovered]Blame
	sockets sockets
}

// Merge adds what providers found to the configuration files. The files take precedence,
// then documents of providers by the name of the provider, then the older container,
// and at last containers of other machines by the name of their provider: the result does not depend on the order in which things were
// found. A problem of one object never removes another one, and objects that are
// unchanged since the previous merge, which may be nil, cost almost nothing. Blamed are
// objects that are left out because of errors after the merge.
func Merge(documents *config.Config, providers []Provider, before *Merged, blamed map[*config.Discovered]Blame) *Merged {
	if before == nil {
		before = &Merged{}
	}
	out := &Merged{Config: documents}
	if len(providers) == 0 {
		return out
	}
	out.known, out.Blamed = map[identity]*object{}, map[*config.Discovered]Blame{}
	m := &merge{out: out, blamed: blamed, claims: map[string][]claim{}}
	var all []*object
	for i := range providers {
		p := &providers[i]
		for _, issue := range p.Issues {
			issue.Provider = p.Name
			m.add(issue)
		}
		for _, d := range p.Objects {
			all = append(all, m.find(d, p, before))
		}
	}
	if len(all) > 0 {
		slices.SortFunc(all, older)
		out.owners = newOwners(documents, before)
		m.owners, m.sockets = out.owners, socketsOf(documents)
		m.adder = config.NewAdder(documents, before.Config)
		for _, o := range all {
			m.object(o)
		}
		out.Config = m.adder.Config()
	}
	slices.SortFunc(out.Issues, compareIssues)
	out.Issues = slices.CompactFunc(out.Issues, func(a, b Issue) bool { return a == b })
	return out
}

// find returns an object as the labels say it, or as it was found before.
func (m *merge) find(d *config.Discovered, p *Provider, before *Merged) *object {
	id := identity{p.Name, d.Kind, d.Name, d.Origin.Container}
	o := before.known[id]
	if o == nil || !slices.Equal(o.ports, p.Bounds.Ports) || o.Discovered != d && !reflect.DeepEqual(o.Discovered, d) {
		o = &object{Found: config.Find(d, p.Bounds.Ports), ports: p.Bounds.Ports}
		switch settings := o.Read().(type) {
		case *config.Proxy:
			o.hosts, _ = settings.Hosts() // the check reports what is wrong with them
		case *config.TCPProxy:
			o.hosts, _ = settings.Names()
		}
	} else {
		again := *o
		o = &again
	}
	o.provider = p
	m.out.known[id] = o
	return o
}

// older orders objects by who has what both want.
func older(a, b *object) int {
	x, y := a.Discovered, b.Discovered
	remote := x.Origin.Via == config.ViaAgent
	switch {
	case remote != (y.Origin.Via == config.ViaAgent):
		if remote {
			return 1 // what other machines say of their age counts for themselves only
		}
		return -1
	case remote && a.provider.Name != b.provider.Name:
		return cmp.Compare(a.provider.Name, b.provider.Name)
	}
	return cmp.Or(x.Created.Compare(y.Created), cmp.Compare(x.Origin.Container, y.Origin.Container),
		cmp.Compare(a.provider.Name, b.provider.Name), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Name, y.Name))
}

// object adds an object, or says why not.
func (m *merge) object(o *object) {
	if m.mistaken(o) || m.outOfBounds(o) || m.nameTaken(o) || m.hostTaken(o) {
		return
	}
	if b, ok := m.blamed[o.Discovered]; ok {
		m.out.Blamed[o.Discovered] = b
		m.issue(o, b.Label, b.Code, b.Message, b.Hint)
		return
	}
	if problems := m.adder.Add(o.Found); len(problems) > 0 {
		m.problems(o, problems)
		return
	}
	m.claim(o)
}

// mistaken reports all problems of an object whose labels are invalid by themselves,
// and what the provider's entry does not allow.
func (m *merge) mistaken(o *object) bool {
	if o.Object != nil {
		return false
	}
	m.beyondProvider(o)
	m.problems(o, m.adder.Add(o.Found))
	return true
}

// problems reports problems as issues.
func (m *merge) problems(o *object, all []config.LabelProblem) {
	codes := map[config.LabelFault]Code{
		config.LabelUnknown: UnknownLabel, config.LabelForbidden: NotForLabels, config.LabelValue: BadValue, config.LabelReference: NoSuchObject,
	}
	for _, p := range all {
		code := codes[p.Fault]
		if p.Label == nil && code == BadValue {
			code = Invalid
		}
		what := p.What
		if p.Label == nil && p.Field != "" {
			what = p.Field + ": " + what
		}
		m.issue(o, p.Label, code, what, p.Remedy)
	}
}

// nameTaken reports an object whose name another one has.
func (m *merge) nameTaken(o *object) bool {
	d := o.Discovered
	if !m.adder.Has(d.Kind, d.Name) {
		if m.adder.Full(d.Kind) {
			m.issue(o, nil, TooMany, fmt.Sprintf("there are as many %s as there may be", d.Kind), "remove some")
			return true
		}
		return false
	}
	noun := config.KindOf(d.Kind).Noun
	if winner := m.adder.Config().Found(d.Kind, d.Name); winner != nil {
		m.conflict(o, winner.Discovered, nil, fmt.Sprintf("the name %s", d.Name), "give one of them another name")
		return true
	}
	m.issue(o, nil, Conflict, fmt.Sprintf("a configuration file has a %s %s too (%s), which takes precedence", noun, d.Name, m.where(d.Kind, d.Name)), "give one of them another name")
	return true
}

// conflict reports to both of two discovered objects that they conflict.
func (m *merge) conflict(loser *object, winner *config.Discovered, label *config.Label, what, hint string) {
	precedence := "is older"
	if winner.Created.IsZero() || winner.Origin.Provider != loser.provider.Name && loser.Discovered.Origin.Via == config.ViaAgent {
		precedence = "takes precedence"
	}
	m.issue(loser, label, Conflict, fmt.Sprintf("%s of %s has %s, and %s", nounOf(winner), winner.Origin, what, precedence), hint)
	m.add(Issue{
		Provider: winner.Origin.Provider, Container: winner.Origin.Container, Label: winner.Origin.Label, Kind: winner.Kind, Name: winner.Name,
		Code: Conflict, Message: fmt.Sprintf("%s of %s wants %s too, and is left out", nounOf(loser.Discovered), loser.Discovered.Origin, what), Hint: hint,
	})
}

// nounOf returns the words for a discovered object: "proxy shop".
func nounOf(d *config.Discovered) string { return config.KindOf(d.Kind).Noun + " " + d.Name }

// where returns where an object of the configuration files is defined.
func (m *merge) where(kind, name string) string {
	o, _ := m.adder.Config().Origin(kind, name)
	return o.String()
}

// issue adds an issue of an object.
func (m *merge) issue(o *object, l *config.Label, code Code, message, hint string) {
	m.add(o.issue(l, code, message, hint))
}

// issue returns an issue of the object and a label, which may be nil.
func (o *object) issue(l *config.Label, code Code, message, hint string) Issue {
	d := o.Discovered
	i := Issue{
		Provider: o.provider.Name, Container: d.Origin.Container, Label: d.Origin.Label, Kind: d.Kind, Name: d.Name,
		Code: code, Message: message, Hint: hint,
	}
	if l != nil {
		i.Label = l.Name
		i.Container = cmp.Or(l.Container, i.Container)
	}
	return i
}

func (m *merge) add(i Issue) {
	if len(m.out.Issues) < maxIssues {
		m.out.Issues = append(m.out.Issues, i)
	}
}

// compareIssues orders issues for people.
func compareIssues(a, b Issue) int {
	return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Container, b.Container), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.Label, b.Label), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Message, b.Message))
}

// Blame returns which discovered objects problems of a later step are about, and the
// problems that are about none.
func (m *Merged) Blame(problems []schema.Problem) (map[*config.Discovered]Blame, []schema.Problem) {
	blamed := map[*config.Discovered]Blame{}
	var rest []schema.Problem
	for _, p := range problems {
		kind, below := document.CutStep(p.Field)
		name, _ := document.CutStep(below)
		f := m.Config.Found(kind.Name, name.Name)
		if f == nil {
			rest = append(rest, p)
			continue
		}
		if _, told := blamed[f.Discovered]; !told {
			blamed[f.Discovered] = Blame{Code: Invalid, Label: f.LabelOf(p.Field), Message: p.Field + ": " + p.What, Hint: p.Remedy}
		}
	}
	return blamed, rest
}

// Same reports whether the configuration is that of a merge before: the same documents,
// and the same discovered objects.
func (m *Merged) Same(before *Merged) bool {
	if before == nil || before.Config == nil || m.Config.Documents() != before.Config.Documents() {
		return false
	}
	return m.Config.SameFound(before.Config)
}

// Count returns how many objects of a provider are in the configuration.
func (m *Merged) Count(provider string) int {
	n := 0
	for id, o := range m.known {
		if f := m.Config.Found(id.kind, id.name); id.provider == provider && f == o.Found && f != nil {
			n++
		}
	}
	return n
}

// Discovered returns the objects of the configuration that were discovered and were not
// so in the one before, or were otherwise.
func (m *Merged) Discovered(before *Merged) []*config.Discovered {
	var out []*config.Discovered
	for _, id := range slices.SortedFunc(maps.Keys(m.known), compareIdentities) {
		f := m.Config.Found(id.kind, id.name)
		if f == nil || f != m.known[id].Found {
			continue
		}
		if before == nil || before.Config == nil || before.Config.Found(id.kind, id.name) != f {
			out = append(out, f.Discovered)
		}
	}
	return out
}

func compareIdentities(a, b identity) int {
	return cmp.Or(cmp.Compare(a.provider, b.provider), cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name), cmp.Compare(a.container, b.container))
}
