package ports

import (
	"net/netip"
	"slices"
	"strconv"

	"headgate/internal/config"
)

// joinRanges joins the states of the ports of one TCP or UDP proxy that follow each other and
// are the same but for numbers: an operator sees a range as it was written. It changes all.
func joinRanges(all []State) []State {
	several := map[rangeOf]int{}
	for i := range all {
		if s := &all[i]; s.Protocol == config.TCP || s.Protocol == config.UDP {
			several[s.rangeOf()]++
		}
	}
	type member struct {
		address netip.AddrPort
		State
	}
	members := map[rangeOf][]member{}
	var order []rangeOf
	out := all[:0]
	for _, s := range all {
		if several[s.rangeOf()] < 2 {
			out = append(out, s)
			continue
		}
		if members[s.rangeOf()] == nil {
			order = append(order, s.rangeOf())
		}
		address, _ := netip.ParseAddrPort(s.Address)
		members[s.rangeOf()] = append(members[s.rangeOf()], member{address, s})
	}
	for _, of := range order {
		list := members[of]
		slices.SortFunc(list, func(a, b member) int { return a.address.Compare(b.address) })
		for i := 0; i < len(list); {
			first, last := list[i].State, list[i].address
			for i++; i < len(list) && list[i].address == netip.AddrPortFrom(last.Addr(), last.Port()+1); i++ {
				last = list[i].address
				first.add(&list[i].State)
			}
			if first.Address != last.String() {
				first.Address += "-" + strconv.Itoa(int(last.Port()))
			}
			out = append(out, first)
		}
	}
	return out
}

// rangeOf is what the ports of a range have in common to be one state.
type rangeOf struct {
	name               string
	protocol           config.Protocol
	word, reason, hint string
	holds              bool
}

func (s *State) rangeOf() rangeOf {
	return rangeOf{s.Name, s.Protocol, s.State, s.Reason, s.Hint, s.Holds}
}

// add adds the numbers of another port of a range.
func (s *State) add(other *State) {
	if other.Since.Before(s.Since) {
		s.Since = other.Since
	}
	s.Connections += other.Connections
	s.Accepted += other.Accepted
	s.AtLimit = s.AtLimit || other.AtLimit
}
