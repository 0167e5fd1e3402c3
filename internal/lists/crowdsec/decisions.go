package crowdsec

import (
	"net/netip"
	"strings"

	"headgate/internal/setting/ipset"
)

// typeBan is the type of the decisions that count.
const typeBan = "ban"

// Decisions are the decisions in force to ban an address or a network. Several may ban the
// same one: it is banned until the last of them has gone. The zero value has none. It is
// for one goroutine.
type Decisions struct {
	of     map[int64]netip.Prefix
	counts map[netip.Prefix]int
	// refused are networks that decisions name and that were left out.
	ignored int
}

// Apply takes a delta, and returns the networks that are banned by it and were not before,
// and those that no longer are. Allowed reports whether a network may be banned at all.
func (d *Decisions) Apply(delta Delta, allowed func(netip.Prefix) bool) (add, remove []netip.Prefix) {
	if d.of == nil {
		d.of, d.counts = map[int64]netip.Prefix{}, map[netip.Prefix]int{}
	}
	before := map[netip.Prefix]bool{} // what the delta touches, and whether it was banned
	touch := func(p netip.Prefix) {
		if _, known := before[p]; !known {
			before[p] = d.counts[p] > 0
		}
	}
	drop := func(id int64) {
		if p, known := d.of[id]; known {
			touch(p)
			delete(d.of, id)
			if d.counts[p]--; d.counts[p] == 0 {
				delete(d.counts, p)
			}
		}
	}
	if delta.Whole {
		d.ignored = 0
		for id := range d.of {
			drop(id)
		}
	}
	for i := range delta.Deleted {
		drop(delta.Deleted[i].ID)
	}
	for i := range delta.New {
		n := &delta.New[i]
		if _, known := d.of[n.ID]; known || !strings.EqualFold(n.Type, typeBan) {
			continue
		}
		p, err := parse(n.Value)
		if err != nil || allowed != nil && !allowed(p) {
			d.ignored++
			continue
		}
		touch(p)
		d.of[n.ID] = p
		d.counts[p]++
	}
	for p, was := range before {
		switch is := d.counts[p] > 0; {
		case is && !was:
			add = append(add, p)
		case was && !is:
			remove = append(remove, p)
		}
	}
	return add, remove
}

// parse reads the value of a decision. A range may have host bits.
func parse(value string) (netip.Prefix, error) {
	if p, err := netip.ParsePrefix(value); err == nil && !p.Addr().Is4In6() {
		return p.Masked(), nil
	}
	return ipset.Parse(value)
}

// Networks returns how many networks are banned, Ignored how many decisions were left out
// since all were read last.
func (d *Decisions) Networks() int { return len(d.counts) }

// Ignored returns how many decisions were left out since all were read last.
func (d *Decisions) Ignored() int { return d.ignored }
