package translate

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"headgate/internal/config"
	"headgate/internal/config/document"
	"headgate/internal/schema"
)

// ParsePorts reads pairs such as 80=8080: the number of a port in the source, and the one
// that it gets in the document.
func ParsePorts(pairs []string) (map[uint16]uint16, error) {
	out := map[uint16]uint16{}
	for _, pair := range pairs {
		from, to, ok := strings.Cut(pair, "=")
		old, err1 := strconv.ParseUint(from, 10, 16)
		other, err2 := strconv.ParseUint(to, 10, 16)
		if _, twice := out[uint16(old)]; !ok || err1 != nil || err2 != nil || old == 0 || other == 0 || twice {
			return nil, misused("invalid ports %q, want pairs like 80=8080,443=8443, each number once", strings.Join(pairs, ","))
		}
		out[uint16(old)] = uint16(other)
	}
	return out, nil
}

// listeners are the sections of a document whose objects listen.
var listeners = []string{"ports", "tcp_proxies", "udp_proxies"}

// moved gives the ports of a document other numbers, so that it can be served beside the
// proxy that it was made from. The checks tell which ports that proxy still shares.
func moved(text []byte, numbers map[uint16]uint16) (out []byte, checks []string, err error) {
	var all map[string]any
	if err := yaml.Unmarshal(text, &all); err != nil {
		return nil, nil, fmt.Errorf("read the document: %w", err)
	}
	var edits []document.Edit
	for _, section := range listeners {
		objects, _ := all[section].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(objects)) {
			o, _ := objects[name].(map[string]any)
			address, _ := o["address"].(string)
			at, err := netip.ParseAddrPort(address)
			if err != nil {
				continue // such as a TCP proxy that names a port
			}
			to, ok := numbers[at.Port()]
			if !ok {
				checks = append(checks, fmt.Sprintf("%s.%s keeps %s, which the proxy of the source may have: it opens when that has closed it, or give it another number by --ports %d=…", section, name, at, at.Port()))
				continue
			}
			value, err := json.Marshal(netip.AddrPortFrom(at.Addr(), to).String())
			if err != nil {
				return nil, nil, err
			}
			edits = append(edits, document.Edit{Op: document.Set, Path: schema.JoinPath(section, name) + ".address", Value: value})
		}
	}
	if len(edits) == 0 {
		return text, checks, nil
	}
	docs, problem := config.Documents{List: []config.Document{{Name: "headgate.yaml", Data: text}}}.Edit(edits...)
	if problem != nil {
		return nil, nil, fmt.Errorf("give the ports other numbers: %w", problem)
	}
	return docs.List[0].Data, checks, nil
}
