package nginx

import (
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
)

// addressed is a variable whose value the client's address decides: of a block geo, or of
// a map of the address or of such a variable.
type addressed struct {
	parts []part // every address is in one of them
	why   string // it cannot be used
}

// part is the addresses for which a variable has one value.
type part struct {
	value    string
	networks []netip.Prefix
}

// maxGeoEntries bounds a block geo.
const maxGeoEntries = 100_000

// clientVariables are the address of the client.
var clientVariables = []string{"$remote_addr", "$binary_remote_addr", "$realip_remote_addr"}

// geoBlock reads a block geo.
func (t *translator) geoBlock(d *directive) {
	name, source := d.arg(0), "$remote_addr"
	if len(d.args) > 1 {
		source, name = d.arg(0), d.arg(1)
	}
	name = strings.TrimPrefix(name, "$")
	a := &addressed{}
	if !slices.Contains(clientVariables, source) {
		a.why = "it uses an address other than that of the client"
	}
	var entries []entry
	otherwise := ""
	for _, e := range d.block {
		switch {
		case e.name == "default":
			otherwise = e.arg(0)
		case e.name == "ranges" || e.name == "include":
		case e.name == "proxy" || e.name == "proxy_recursive" || e.name == "delete":
			a.why = "it has " + e.name + ": client_ip names the proxies in front"
		default:
			networks, ok := addresses(e.name)
			if !ok {
				a.why = e.name + " is not an address or network"
			}
			for _, p := range networks {
				entries = append(entries, entry{p, e.arg(0)})
			}
		}
	}
	if len(entries) > maxGeoEntries {
		a.why = "it has more than 100000 networks"
	}
	if a.why == "" {
		a.parts = partition(entries, otherwise)
	}
	t.geo[name] = a
	t.geoBlocks[name] = d
}

// addresses reads an address, a network, or a range of addresses.
func addresses(text string) ([]netip.Prefix, bool) {
	if p, ok := network(text); ok {
		return []netip.Prefix{p}, true
	}
	first, last, ok := strings.Cut(text, "-")
	from, err1 := netip.ParseAddr(first)
	to, err2 := netip.ParseAddr(last)
	if !ok || err1 != nil || err2 != nil || from.BitLen() != to.BitLen() || to.Less(from) {
		return nil, false
	}
	var out []netip.Prefix
	for { // the widest network that starts at from and does not extend to to
		p := netip.PrefixFrom(from, from.BitLen())
		for p.Bits() > 0 {
			wider := netip.PrefixFrom(from, p.Bits()-1)
			if wider.Masked().Addr() != from || to.Less(importer.Last(wider)) {
				break
			}
			p = wider
		}
		out = append(out, p)
		if last := importer.Last(p); last == to {
			return out, true
		} else {
			from = last.Next()
		}
	}
}

// entry is a network with the value of a variable for it.
type entry struct {
	network netip.Prefix
	value   string
}

// partition returns the addresses of each value. The narrowest network with an address
// decides, of equal ones the last.
func partition(entries []entry, otherwise string) []part {
	slices.Reverse(entries)
	slices.SortStableFunc(entries, func(a, b entry) int { return b.network.Bits() - a.network.Bits() })
	byValue := map[string][]netip.Prefix{}
	var cover importer.Cover
	for _, e := range entries {
		if cover.Has(e.network) {
			continue
		}
		byValue[e.value] = append(byValue[e.value], cover.Add(e.network)...)
	}
	byValue[otherwise] = append(byValue[otherwise], importer.Without(importer.AllAddresses(), cover.All())...)
	var out []part
	for value, networks := range byValue {
		out = append(out, part{value, networks})
	}
	slices.SortFunc(out, func(a, b part) int { return strings.Compare(a.value, b.value) })
	return out
}

// addressedBy returns what the value of a variable is by the client's address, nil if it
// depends on something else.
func (t *translator) addressedBy(name string) *addressed { return t.addressedIn(name, 0) }

func (t *translator) addressedIn(name string, depth int) *addressed {
	if a := t.geo[name]; a != nil {
		t.usedGeo[name] = true
		return a
	}
	m := t.maps[name]
	if m == nil || depth > maxDepth {
		return nil
	}
	source, ok := strings.CutPrefix(m.source, "$")
	if !ok {
		return nil
	}
	var out *addressed
	switch {
	case slices.Contains(clientVariables, m.source):
		out = m.byAddress()
	default:
		inner := t.addressedIn(strings.Trim(source, "{}"), depth+1)
		if inner == nil {
			return nil
		}
		out = m.of(inner)
	}
	t.usedMaps[name] = true
	return out
}

// byAddress reads a map of the client's address. Its keys are whole addresses.
func (m *mapping) byAddress() *addressed {
	if len(m.expr) > 0 {
		return &addressed{why: "addresses are compared by network, not by an expression"}
	}
	var entries []entry
	for _, e := range m.exact {
		a, err := netip.ParseAddr(strings.TrimPrefix(e.name, `\`))
		if err != nil {
			continue // no client has it
		}
		entries = append(entries, entry{netip.PrefixFrom(a, a.BitLen()), e.arg(0)})
	}
	return &addressed{parts: partition(entries, m.fallback())}
}

// of is a map of a variable that the address decides.
func (m *mapping) of(a *addressed) *addressed {
	out := &addressed{why: a.why}
	for _, p := range a.parts {
		value, s := m.fallback(), constant(p.value)
		for _, e := range slices.Concat(m.exact, m.expr) {
			c, _ := m.entry(s, e)
			if c.Problem != "" {
				return &addressed{why: c.Problem}
			}
			if len(c.Any) > 0 {
				value = e.arg(0)
				break
			}
		}
		if i := slices.IndexFunc(out.parts, func(o part) bool { return o.value == value }); i >= 0 {
			out.parts[i].networks = slices.Concat(out.parts[i].networks, p.networks)
		} else {
			out.parts = append(out.parts, part{value, p.networks})
		}
	}
	return out
}

func (m *mapping) fallback() string {
	if m.otherwise == nil {
		return ""
	}
	return m.otherwise.arg(0)
}

// kept is the clients that conditions about their addresses keep out.
type kept struct {
	limited     bool // all are but those of allow
	allow, deny []netip.Prefix
	lines       []*directive // the conditions with what they do
	note        string
}

// refuseByAddress makes a filter of an if on a variable of the client's address that
// rejects the request. It reports whether d is one.
func (v *view) refuseByAddress(f *flow, d *directive) bool {
	name, op, value := ifWords(d)
	variable, ok := strings.CutPrefix(name, "$")
	if !ok {
		return false
	}
	a := v.t.addressedBy(strings.Trim(variable, "{}"))
	if slices.Contains(clientVariables, name) && (op == "=" || op == "!=") {
		if p, ok := network(value); ok && p.IsSingleIP() {
			a = &addressed{parts: partition([]entry{{p, value}}, "")}
		}
	}
	switch {
	case a == nil:
		return false
	case a.why != "":
		v.t.AddVerdict(d, importer.Impossible, "%s", a.why)
		return true
	case len(d.block) != 1 || d.block[0].name != "return" || !refuses(d.block[0]):
		v.t.AddVerdict(d, importer.Impossible, "no route is chosen by the client's address: ip_filter refuses clients by it")
		return true
	}
	networks, all, what := a.split(strings.TrimPrefix(op, "!"), v.expand(value), strings.HasPrefix(op, "!"))
	if what != "" {
		v.t.AddVerdict(d, importer.Impossible, "%s", what)
		return true
	}
	v.t.held[d] = true
	f.kept.add(networks, all)
	f.kept.lines = append(f.kept.lines, d, d.block[0])
	if code, _ := returned(d.block[0]); code != 403 {
		f.kept.note = "ip_filter: clients get 403, not " + d.block[0].arg(0)
	}
	v.t.Together(variable, "", networks)
	return true
}

// refuses reports whether a return keeps the client out.
func refuses(d *directive) bool {
	code, text := returned(d)
	return code >= 400 && code < 600 && (text == "" || !strings.Contains(text, "$"))
}

// split returns the networks for which a condition holds; others says that they are those
// for which it does not.
func (a *addressed) split(op, value string, not bool) (networks []netip.Prefix, others bool, what string) {
	var in, out []netip.Prefix
	for _, p := range a.parts {
		c, _ := constant(p.value).compare(op, value)
		if c.Problem != "" {
			return nil, false, c.Problem
		}
		rest := slices.ContainsFunc(p.networks, func(n netip.Prefix) bool { return n.Contains(unnamed) })
		if holds := len(c.Any) > 0; holds != not {
			in, others = append(in, p.networks...), others || rest
		} else {
			out = append(out, p.networks...)
		}
	}
	if others {
		return out, true, ""
	}
	return in, false, ""
}

// unnamed is an address that no configuration contains.
var unnamed = netip.MustParseAddr("192.0.0.170")

// add keeps out networks, or all others than some.
func (k *kept) add(networks []netip.Prefix, others bool) {
	if !others {
		k.deny = append(k.deny, networks...)
		return
	}
	if k.limited {
		networks = importer.Prefixes(importer.Common(importer.Networks(k.allow), importer.Networks(networks)))
	}
	k.allow, k.limited = networks, true
}

// sayGeo adds verdicts to the blocks geo.
func (t *translator) sayGeo() {
	for name, d := range t.geoBlocks {
		a := t.geo[name]
		switch {
		case a.why != "":
			t.AddVerdict(d, importer.Impossible, "%s", a.why)
			for _, e := range d.block {
				t.AddVerdict(e, importer.Impossible, "the block around it could not be translated")
			}
		case t.usedGeo[name]:
			t.Became(d, importer.Same, importer.Through(t.users(name)...), "its networks are in the settings of the routes that use the variable")
			for _, e := range d.block {
				t.Became(e, importer.Same, importer.Through(d), "")
			}
		case len(t.users(name)) == 0:
			ignoreAll(t, []*directive{d}, "nothing uses the variable")
		default:
			t.AddVerdict(d, importer.Impossible, "clients are refused by their addresses (ip_filter); no route or value is chosen by them")
			for _, e := range d.block {
				t.AddVerdict(e, importer.Impossible, "the block around it could not be translated")
			}
		}
	}
}

// filesOfAddresses are the files that have nothing but allow and deny.
func (t *translator) filesOfAddresses() map[string]bool {
	if t.addressFiles == nil {
		t.addressFiles = map[string]bool{}
		var visit func([]*directive)
		visit = func(list []*directive) {
			for _, d := range list {
				only, seen := t.addressFiles[d.File]
				t.addressFiles[d.File] = (only || !seen) && (d.name == "allow" || d.name == "deny")
				visit(d.block)
			}
		}
		visit(t.all)
	}
	return t.addressFiles
}

// together records the networks of lines in files of addresses.
func (t *translator) together(d *directive, networks []netip.Prefix, files map[string][]netip.Prefix) {
	if t.filesOfAddresses()[d.File] {
		key := d.File + "\x00" + d.name
		files[key] = append(files[key], networks...)
	}
}

// togetherIn names the lists of files of addresses.
func (t *translator) togetherIn(files map[string][]netip.Prefix) {
	for key, networks := range files {
		file, _, _ := strings.Cut(key, "\x00")
		t.Together(filepath.Base(file), "", networks)
	}
}
