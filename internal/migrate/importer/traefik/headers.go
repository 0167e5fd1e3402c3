package traefik

import (
	"slices"
	"strconv"
	"strings"

	"headgate/internal/migrate/importer"
)

// headers makes fields rules. An empty value removes a field.
func headers(t *translator, r *router, n *node) {
	for field, direction := range map[string]string{"customRequestHeaders": "request", "customResponseHeaders": "response"} {
		for _, one := range n.get(field).children() {
			rule := importer.NewObject().Set("direction", direction).Set("name", one.name())
			if one.value == "" {
				rule.Set("operation", "remove")
			} else {
				rule.Set("value", strings.ReplaceAll(one.value, "{", "{{"))
			}
			if strings.EqualFold(one.name(), "Host") && direction == "request" {
				r.host = one.value
				t.becameAll(one, importer.Same, importer.Value("host_header", one.value), "host_header of the proxy")
				continue
			}
			r.route.Append("headers", rule.Flow())
			t.becameAll(one, importer.Same, rule.As("headers"), "a header rule")
		}
	}
	for _, s := range securityFields(n) {
		rule := importer.NewObject().Set("direction", "response").Set("name", s.name).Set("value", s.value)
		r.route.Append("headers", rule)
		for _, field := range s.fields {
			t.becameAll(n.get(field), importer.Same, rule.As("headers"), "a header rule")
		}
	}
	for _, name := range []string{"stsSeconds", "stsIncludeSubdomains", "stsPreload", "frameDeny", "contentTypeNosniff", "browserXssFilter"} {
		t.sayAll(n.get(name), importer.Ignored, "it sends nothing")
	}
	if force := n.get("forceSTSHeader"); force.is() {
		t.becameAll(force, importer.Close, through(n.get("stsSeconds")), "the rule is for http too; browsers ignore it there")
	}
	corsOf(t, r, n)
}

// securityField is a header that fields of the middleware set.
type securityField struct {
	name, value string
	fields      []string
}

// securityFields are the headers that switches of the middleware set.
func securityFields(n *node) (out []securityField) {
	if seconds := n.get("stsSeconds").number(0); seconds > 0 {
		value := "max-age=" + strconv.Itoa(seconds)
		if n.get("stsIncludeSubdomains").on() {
			value += "; includeSubDomains"
		}
		if n.get("stsPreload").on() {
			value += "; preload"
		}
		out = append(out, securityField{"Strict-Transport-Security", value, []string{"stsSeconds", "stsIncludeSubdomains", "stsPreload"}})
	}
	if frame := n.get("customFrameOptionsValue").text(); frame != "" {
		out = append(out, securityField{"X-Frame-Options", frame, []string{"customFrameOptionsValue", "frameDeny"}})
	} else if n.get("frameDeny").on() {
		out = append(out, securityField{"X-Frame-Options", "DENY", []string{"frameDeny"}})
	}
	if n.get("contentTypeNosniff").on() {
		out = append(out, securityField{"X-Content-Type-Options", "nosniff", []string{"contentTypeNosniff"}})
	}
	if xss := n.get("customBrowserXSSValue").text(); xss != "" {
		out = append(out, securityField{"X-XSS-Protection", xss, []string{"customBrowserXSSValue", "browserXssFilter"}})
	} else if n.get("browserXssFilter").on() {
		out = append(out, securityField{"X-XSS-Protection", "1; mode=block", []string{"browserXssFilter"}})
	}
	for field, name := range map[string]string{"referrerPolicy": "Referrer-Policy", "contentSecurityPolicy": "Content-Security-Policy", "contentSecurityPolicyReportOnly": "Content-Security-Policy-Report-Only", "permissionsPolicy": "Permissions-Policy"} {
		if v := n.get(field).text(); v != "" {
			out = append(out, securityField{name, v, []string{field}})
		}
	}
	slices.SortFunc(out, func(a, b securityField) int { return strings.Compare(a.name, b.name) })
	return out
}

func corsOf(t *translator, r *router, n *node) {
	cors := importer.NewObject()
	for from, to := range map[string]string{"accessControlAllowOriginList": "allow_origins", "accessControlAllowMethods": "allow_methods", "accessControlAllowHeaders": "allow_headers", "accessControlExposeHeaders": "expose_headers"} {
		if list := n.get(from).texts(); len(list) > 0 {
			cors.Set(to, list)
			if n.get("accessControlAllowOriginList").is() {
				t.becameAll(n.get(from), importer.Same, cors.Field(to), "cors.%s", to)
			}
		}
	}
	if cors.Len() > 0 && !cors.Has("allow_origins") { // nothing is allowed
		for _, name := range []string{"accessControlAllowMethods", "accessControlAllowHeaders", "accessControlExposeHeaders", "accessControlAllowCredentials", "accessControlMaxAge", "addVaryHeader"} {
			t.sayAll(n.get(name), importer.Ignored, "without accessControlAllowOriginList there is nothing to allow")
		}
	}
	if !cors.Has("allow_origins") {
		return
	}
	became := importer.ByItself()
	if n.get("accessControlAllowCredentials").on() {
		became = cors.Set("allow_credentials", true).Field("allow_credentials")
	}
	t.becameAll(n.get("accessControlAllowCredentials"), importer.Same, became, "cors.allow_credentials")
	if age := n.get("accessControlMaxAge").number(0); age > 0 {
		cors.Set("max_age", strconv.Itoa(min(age, 86400))+"s")
	}
	t.becameAll(n.get("accessControlMaxAge"), importer.Same, cors.Field("max_age"), "cors.max_age")
	t.becameAll(n.get("addVaryHeader"), importer.Same, importer.ByItself(), "Vary is always set")
	r.route.Set("cors", cors)
}
