package lists

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"headgate/internal/setting/ipset"
)

// parsed is what a text of entries has.
type parsed struct {
	networks []netip.Prefix
	// wrong is the number of lines that are not entries, and firstWrong the number of the first such
	// line. Its text is not shown: the file may not be a list, but contain a secret.
	wrong, firstWrong int
}

// parse reads a text with an address or network at the begin of each line. What follows
// it, and lines that begin with a mark of a comment, are ignored. Host bits are ignored
// too, since published lists have them. The error says why the text is no list.
func parse(text []byte) (*parsed, error) {
	if looksLikeHTML(text) {
		return nil, errors.New("it is an HTML page, not a list")
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return nil, errors.New("it is a binary file, not a list")
	}
	p, number := &parsed{}, 0
	for line := range bytes.Lines(text) {
		number++
		entry := entryOf(line)
		if entry == "" {
			continue
		}
		network, ok := network(entry)
		if !ok {
			if p.wrong++; p.wrong == 1 {
				p.firstWrong = number
			}
			continue
		}
		if len(p.networks) == maxEntries {
			return nil, fmt.Errorf("it has more than %d entries", maxEntries)
		}
		p.networks = append(p.networks, network)
	}
	if p.wrong > len(p.networks) {
		return nil, fmt.Errorf("%d of %d lines are neither addresses nor networks, the first is line %d", p.wrong, p.wrong+len(p.networks), p.firstWrong)
	}
	return p, nil
}

// looksLikeHTML reports whether a text begins as an HTML page does.
func looksLikeHTML(text []byte) bool {
	head := bytes.ToLower(bytes.TrimLeft(text[:min(len(text), 512)], "\ufeff \t\r\n"))
	for _, mark := range []string{"<!doctype", "<html", "<head", "<body", "<?xml"} {
		if bytes.HasPrefix(head, []byte(mark)) {
			return true
		}
	}
	return false
}

// entryOf returns the entry of a line, "" if it has none.
func entryOf(line []byte) string {
	line = bytes.TrimLeft(line, "\ufeff \t")
	end := bytes.IndexAny(line, " \t\r\n;,#")
	if end < 0 {
		end = len(line)
	}
	if bytes.HasPrefix(line, []byte("//")) {
		return ""
	}
	return string(line[:end])
}

// network reads an entry.
func network(text string) (netip.Prefix, bool) {
	if p, err := ipset.Parse(text); err == nil {
		return p, true
	}
	if !strings.Contains(text, "/") {
		return netip.Prefix{}, false
	}
	p, err := netip.ParsePrefix(text)
	if err != nil || p.Addr().Is4In6() {
		return netip.Prefix{}, false
	}
	return p.Masked(), true
}

// The widest networks that a list from elsewhere may have.
const (
	widest4 = 8
	widest6 = 20
)

// dropped are entries that were left out, with the first of them.
type dropped struct {
	wide, protected           int
	firstWide, firstProtected string
	why                       string
}

// screen returns the networks that a list from elsewhere may have: none that is very wide,
// and none with an address that must not be refused.
func screen(networks []netip.Prefix, protected func(netip.Prefix) string) ([]netip.Prefix, dropped) {
	var d dropped
	kept := networks[:0:len(networks)]
	for _, p := range networks {
		if p.Addr().Is4() && p.Bits() < widest4 || p.Addr().Is6() && p.Bits() < widest6 {
			if d.wide++; d.wide == 1 {
				d.firstWide = p.String()
			}
			continue
		}
		if protected != nil {
			if why := protected(p); why != "" {
				if d.protected++; d.protected == 1 {
					d.firstProtected, d.why = p.String(), why
				}
				continue
			}
		}
		kept = append(kept, p)
	}
	return kept, d
}

// issues returns what an operator should know of what was left out.
func (d *dropped) issues() (out []Issue) {
	if d.wide > 0 {
		out = append(out, Issue{"entries_too_wide", fmt.Sprintf("%s left out: wider than /%d (IPv6 /%d); the first is %s", count(d.wide, "entry", "entries"), widest4, widest6, d.firstWide),
			"write a network that wide in entries or ip_filter if you mean it"})
	}
	if d.protected > 0 {
		out = append(out, Issue{"entries_protected", fmt.Sprintf("%s left out: %s is %s", count(d.protected, "entry", "entries"), d.firstProtected, d.why),
			"add the address in entries or ip_filter if you mean to refuse it"})
	}
	return out
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
