package compare

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"

	"headgate/internal/config"
)

// hostsIn are the hosts within domains that an expression matches: the domain itself, or
// the literal start of the expression before it, as app.example.com for ~^app\..
func hostsIn(domains []string, h config.VirtualHost) (hosts []string) {
	tree, err := syntax.Parse(h.Regex.String(), syntax.Perl)
	if err != nil {
		return nil
	}
	begins, _ := beginnings(tree.Simplify())
	for _, domain := range domains {
		candidates := []string{domain}
		for _, begin := range begins {
			candidates = append(candidates, begin, strings.TrimSuffix(begin, ".")+"."+domain)
		}
		for _, host := range candidates {
			within := host == domain || strings.HasSuffix(host, "."+domain)
			if within && !strings.HasPrefix(host, ".") && h.Regex.MatchString(host) && !slices.Contains(hosts, host) {
				hosts = append(hosts, host)
			}
		}
	}
	return hosts
}

// CheckDomain reports why a text is not a domain whose hosts can be compared.
func CheckDomain(domain string) error {
	odd := func(c rune) bool { return !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '.') }
	if domain == "" || len(domain) > 253 || strings.ContainsFunc(domain, odd) || strings.HasPrefix(domain, ".") || strings.HasSuffix(domain, ".") || strings.Contains(domain, "..") {
		return fmt.Errorf("invalid domain %q, want one like example.com", shortenTo(domain, maxName))
	}
	return nil
}

// maxBeginnings limits the literal starts of an expression.
const maxBeginnings = 20

// beginnings are the literal texts with which matches of an expression can start. whole
// means that they are all that it matches, and nothing follows.
func beginnings(tree *syntax.Regexp) (texts []string, whole bool) {
	switch tree.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginText, syntax.OpBeginLine:
		return []string{""}, true
	case syntax.OpLiteral:
		return []string{strings.ToLower(string(tree.Rune))}, true
	case syntax.OpCapture:
		return beginnings(tree.Sub[0])
	case syntax.OpQuest:
		texts, whole = beginnings(tree.Sub[0])
		return append(texts, ""), whole
	case syntax.OpAlternate:
		whole = true
		for _, sub := range tree.Sub {
			more, all := beginnings(sub)
			texts, whole = append(texts, more...), whole && all
		}
		return texts[:min(len(texts), maxBeginnings)], whole
	case syntax.OpConcat:
		texts = []string{""}
		for _, sub := range tree.Sub {
			more, all := beginnings(sub)
			var joined []string
			for _, a := range texts {
				for _, b := range more {
					joined = append(joined, a+b)
				}
			}
			if texts = joined[:min(len(joined), maxBeginnings)]; !all {
				return texts, false
			}
		}
		return texts, true
	}
	return []string{""}, false
}
