package api

import (
	"cmp"
	"fmt"
	"go/format"
	"maps"
	"net/http"
	"net/netip"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate/internal/schema"
)

// goClient writes the types and the operations of package client: a struct for every record
// of the table, with the fields, types and comments of the server's, and a method for every
// row.
type goClient struct {
	a        *API
	comments *schema.Comments
	config   map[reflect.Type]bool // types of the configuration
	names    map[reflect.Type]string
	types    map[string]string // the text of each type
	failed   error
}

// clientNames are names of types that would otherwise be taken twice, or mean nothing outside
// of package api: the server's package and type.
var clientNames = map[string]string{
	"control.AdminListener": "AdminListener",
	"agent.Report":          "AgentReport", "agent.Object": "AgentObject", "agent.Label": "AgentLabel", "agent.Server": "AgentServer", "agent.Issue": "AgentIssue",
	"api.chosenBody": "ChosenCertificate", "api.discoveryBody": "DiscoveryState", "api.gateBody": "GateState",
	"api.geoBody": "GeoState", "api.issueBody": "DiscoveryIssue", "config.Problem": "ConfigProblem",
	"api.differenceBody": "ConfigDifference", "api.proxyState": "ProxyObjectState", "api.streamState": "StreamObjectState",
	"api.summaryBody": "StatusSummary", "api.userBody": "User", "config.User": "BasicAuthUser", "basicauth.User": "BasicAuthUser",
	"api.banRulesBody": "BanRules", "bans.Shown": "BannedAddress", "api.whoAmI": "Identity", "api.mistake": "Mistake",
	"plan.Answered": "ExplainedAnswer", "bans.Would": "TrialBan", "gate.Entry": "AddressEntry", "review.More": "MoreChanges", "review.Sentence": "Statement",
	"review.Object": "ObjectRef", "compare.Side": "ComparisonSide", "compare.Reason": "ComparisonReason", "compare.Summary": "ComparisonSummary",
	"compare.Result": "ComparisonResult", "whatif.Result": "WhatIf", "health.Result": "HealthCheckResult", "control.Refused": "RejectedStart",
	"upstream.Standing": "ServerState", "bans.Trial": "BanTrial", "upgrade.State": "UpgradeState", "upgrade.Check": "UpgradeCheck", "upgrade.Previous": "PreviousProcess",
	"api.storedBody": "StoredCertificate", "api.passkeyState": "PasskeyState", "api.chosenChallenge": "ChosenChallenge", "api.stepBody": "OrderStep", "api.attemptBody": "OrderAttempt",
	"api.troubleBody": "OrderProblem", "api.accessBody": "GateAccess", "api.probed": "ServerTest", "api.liftBody": "LiftedBans", "api.pairBody": "PairState",
	"lists.State": "ListState", "lists.NameState": "ListNameState", "geo.State": "GeoDatabaseState", "recent.Request": "Request", "api.letterBody": "DeadLetter", "api.heldBody": "HeldServer", "api.cacheState": "CacheState", "plan.CacheState": "CacheMemory", "cache.Stored": "StoredResponse", "cache.Diagnosis": "CacheDiagnosis", "api.validation": "Validation",
	"upstream.SplitDecision": "SplitDecision",
}

// clientMethods are names of methods that do not follow from the method and path.
var clientMethods = map[string]string{
	"POST /cache/purge": "PurgeCache", "GET /cache": "GetCache", "GET /cache/entries": "GetCacheEntries", "POST /cache/explain": "ExplainCache", "POST /compare": "StartComparison", "DELETE /compare": "StopComparison", "GET /compare": "GetComparison",
	"POST /config/edits": "EditConfig", "POST /config/plan": "PlanConfig", "POST /config/validate": "ValidateConfig",
	"POST /confirm": "Confirm", "POST /revert": "Revert", "POST /cutover": "StartCutover", "DELETE /cutover": "RevertCutover",
	"POST /dns_providers/test": "TestDNSProvider", "GET /events/history": "ListEvents", "GET /logs/access": "ListRequests",
	"POST /explain": "Explain", "POST /explain/stream": "ExplainStream", "POST /import": "Import",
	"GET /openapi.json": "GetOpenAPI", "POST /orders/{name}/order": "PlaceOrder", "POST /people/{name}/invitation": "InvitePerson",
	"POST /people/{name}/reset": "ResetPerson", "POST /pair/promote": "PromotePair", "POST /session": "SignIn", "DELETE /session": "SignOut",
	"POST /session/totp": "StartTOTP", "PUT /session/totp": "FinishTOTP", "POST /session/oidc": "StartOIDC", "PUT /session/oidc": "FinishOIDC",
	"POST /session/passkey": "StartPasskeySignIn", "PUT /session/passkey": "FinishPasskeySignIn", "GET /session/passkeys": "ListOwnPasskeys",
	"POST /session/passkeys": "StartPasskey", "PUT /session/passkeys": "AddPasskey", "DELETE /session/passkeys/{passkey}": "RemoveOwnPasskey",
	"DELETE /users/{name}/passkeys": "RemovePasskeys", "DELETE /users/{name}/passkeys/{passkey}": "RemovePasskey",
	"PUT /session/password": "ChangePassword", "POST /setup": "SetUp", "POST /upgrade": "Upgrade", "POST /upgrade/check": "CheckUpgrade",
	"GET /upgrade": "GetUpgrade", "GET /audit": "ListAudit", "GET /banned": "ListBanned", "POST /banned": "BanAddress", "POST /banned/lift": "LiftBan",
	"GET /banned/rules": "GetBanRules", "GET /certificates/chosen": "ListChosenCertificates", "POST /certificates/self_signed": "CreateSelfSignedCertificate",
	"POST /certificates/upload": "UploadCertificate", "GET /revisions/{number}/diff/{other}": "DiffRevisions", "GET /servers/held": "ListHeldServers",
	"POST /pair/invitations": "CreatePairInvitation", "GET /series": "GetSeries", "GET /discovery": "GetDiscoveryState",
	"GET /geo": "GetGeoState", "GET /gate": "GetGateState", "GET /summary": "GetSummary", "GET /dns_providers": "ListDNSProviders",
	"POST /gate/openings": "CreateGateOpening", "PUT /stored_certificates/{name}": "PutStoredCertificate",
}

// actions are last parts of paths that are verbs.
var actions = []string{"adopt", "disable", "drain", "enable", "export", "hold", "preflight", "promote", "push", "rename", "renew", "resend", "reset", "restart", "return", "rollback", "rollover", "test", "undrain"}

// initials are words that Go writes in capitals.
var initials = map[string]string{
	"acme": "ACME", "api": "API", "asn": "ASN", "cdn": "CDN", "cors": "CORS", "cpu": "CPU", "csp": "CSP", "dns": "DNS", "eab": "EAB", "etag": "ETag", "hsts": "HSTS",
	"http": "HTTP", "https": "HTTPS", "id": "ID", "ip": "IP", "json": "JSON", "ms": "MS", "oidc": "OIDC", "os": "OS", "sha256": "SHA256", "sni": "SNI", "ssrf": "SSRF",
	"tcp": "TCP", "tls": "TLS", "totp": "TOTP", "ttl": "TTL", "udp": "UDP", "uri": "URI", "url": "URL", "http2": "HTTP2", "http3": "HTTP3",
}

// camel returns the Go name of a name with underscores.
func camel(name string) string {
	out := ""
	for _, word := range strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("_.-/", r) }) {
		out += cmp.Or(initials[word], strings.ToUpper(word[:1])+word[1:])
	}
	return out
}

// singular returns the noun of one entry of a list.
func singular(plural string) string {
	switch {
	case plural == "people":
		return "person"
	case strings.HasSuffix(plural, "ies"):
		return strings.TrimSuffix(plural, "ies") + "y"
	case strings.HasSuffix(plural, "sses"), strings.HasSuffix(plural, "xies") || strings.HasSuffix(plural, "xes"):
		return strings.TrimSuffix(plural, "es")
	case strings.HasSuffix(plural, "ss"):
		return plural
	}
	return strings.TrimSuffix(plural, "s")
}

const generatedMark = "// Code generated from the table of the API; DO NOT EDIT.\n\npackage client\n\n"

// files returns the two generated files of package client.
func (g *goClient) files() (types, operations string, err error) {
	g.config, g.names, g.types = map[reflect.Type]bool{}, map[reflect.Type]string{}, map[string]string{}
	for _, r := range g.a.rows {
		if r.kind != nil {
			g.markConfig(r.kind.Schema())
		}
	}
	g.structOf(problemObject())
	methods := map[string]string{}
	for _, r := range g.a.rows {
		name, text := g.operation(r)
		if methods[name] != "" {
			return "", "", fmt.Errorf("%s %s: the method %s exists twice", r.method, r.path, name)
		}
		if text != "" {
			methods[name] = text
		}
	}
	if g.failed != nil {
		return "", "", g.failed
	}
	types, err = formatted(generatedMark+imports("encoding/json", "net/netip", "time"), g.types)
	if err != nil {
		return "", "", err
	}
	operations, err = formatted(generatedMark+imports("context", "encoding/json", "iter", "net/url"), methods)
	return types, operations, err
}

func imports(paths ...string) string {
	return "import (\n\"" + strings.Join(paths, "\"\n\"") + "\"\n)\n\n"
}

// formatted returns declarations as a file, sorted by name.
func formatted(head string, declarations map[string]string) (string, error) {
	var b strings.Builder
	b.WriteString(head)
	for _, name := range slices.Sorted(maps.Keys(declarations)) {
		b.WriteString(declarations[name] + "\n")
	}
	text, err := format.Source([]byte(b.String()))
	return string(text), err
}

// markConfig notes the types of a configuration object.
func (g *goClient) markConfig(o *schema.Object) {
	if g.config[o.Go] {
		return
	}
	g.config[o.Go] = true
	for _, f := range o.Fields {
		for t := f.Type; t != nil; t = t.Elem {
			if t.Kind == schema.Struct {
				g.markConfig(t.Object)
			}
		}
	}
}

// structOf adds the type of an object and returns its name.
func (g *goClient) structOf(o *schema.Object) string {
	if name := g.names[o.Go]; name != "" {
		return name
	}
	name := clientNames[path.Base(o.Go.PkgPath())+"."+o.Go.Name()]
	if name == "" {
		name = strings.TrimSuffix(strings.ToUpper(o.Name()[:1])+o.Name()[1:], "Body")
	}
	if g.types[name] != "" && !g.config[o.Go] {
		name = camel(path.Base(o.Go.PkgPath())) + name
	}
	if g.types[name] != "" {
		g.fail(fmt.Errorf("two types have the name %s: name %s.%s in clientNames", name, o.Go.PkgPath(), o.Go.Name()))
	}
	g.names[o.Go], g.types[name] = name, "-" // for types that contain themselves
	about := name + " is a record of the API."
	if text, err := g.comments.Object(o); err == nil {
		about = name + " " + strings.TrimPrefix(text, o.Name()+" ")
	}
	g.types[name] = comment(about) + "type " + name + " struct {\n" + g.fields(o) + "}\n"
	return name
}

// fields returns the fields of an object.
func (g *goClient) fields(o *schema.Object) string {
	text := ""
	for _, f := range o.Fields {
		about, err := g.comments.Field(f)
		g.fail(err)
		about = strings.ReplaceAll(about, "`"+f.Name+"`", camel(f.Name))
		text += comment(about) + camel(f.Name) + " " + g.fieldType(o, f) + " `json:\"" + f.Name + g.omission(o, f) + "\"`\n"
	}
	return text
}

// fieldType returns the type of a field. Optional booleans and numbers of the configuration
// are pointers, because their defaults are not always false and 0.
func (g *goClient) fieldType(o *schema.Object, f *schema.Field) string {
	text := g.typeOf(f.Type)
	optional := g.config[o.Go] && !f.Required && (f.Type.Kind == schema.Bool || f.Type.Kind == schema.Int || f.Type.Kind == schema.Struct)
	if f.Type.Pointer || optional {
		return "*" + text
	}
	return text
}

// omission returns when a field is omitted from JSON: as by the server, and every field of
// the configuration that is absent.
func (g *goClient) omission(o *schema.Object, f *schema.Field) string {
	if g.config[o.Go] {
		return ",omitzero"
	}
	sf, _ := f.Owner.FieldByName(f.GoName)
	_, options, found := strings.Cut(sf.Tag.Get("json"), ",")
	if !found {
		return ""
	}
	return "," + options
}

// typeOf returns the Go type of values.
func (g *goClient) typeOf(t *schema.Type) string {
	switch t.Kind {
	case schema.Struct:
		return g.structOf(t.Object)
	case schema.List:
		return "[]" + g.typeOf(t.Elem)
	case schema.Map:
		return "map[string]" + g.typeOf(t.Elem)
	case schema.Bool:
		return "bool"
	case schema.Int, schema.Number:
		return t.Go.Kind().String()
	case schema.Text:
		return "string"
	case schema.Scalar:
		switch t.Go {
		case of[time.Time](), of[netip.Addr](), of[netip.Prefix](), of[netip.AddrPort]():
			return t.Go.String()
		}
		return "string"
	}
	return "json.RawMessage"
}

func (g *goClient) fail(err error) {
	if g.failed == nil {
		g.failed = err
	}
}

// comment returns text as a comment, wrapped.
func comment(text string) string {
	out := ""
	for _, paragraph := range strings.Split(text, "\n") {
		line := "//"
		for _, word := range strings.Fields(paragraph) {
			if len(line)+len(word) > 96 {
				out, line = out+line+"\n", "//"
			}
			line += " " + word
		}
		out += line + "\n"
	}
	return out
}

// objectOf returns the type of an object of the configuration with its state.
func (g *goClient) objectOf(r *row) string {
	object := g.structOf(r.kind.Schema())
	name := object + "Object"
	if g.types[name] == "" {
		state := schema.Describe(stateOf(r.kind))
		g.types[name] = comment(name+" is a "+r.kind.Noun+" with its name, origin and state. The fields of the state are ignored in requests.") +
			"type " + name + " struct {\n" + g.fields(state) + "\n" + g.fields(r.kind.Schema()) + "}\n"
	}
	return name
}

// operation returns the method of a row, and "" for one that is written by hand.
func (g *goClient) operation(r *row) (name, text string) {
	if r.stream != nil || r.upload != "" {
		return "", ""
	}
	name = methodName(g.a, r)
	params, args := "ctx context.Context", fmt.Sprintf("%q", r.path)
	for _, m := range placeholder.FindAllStringSubmatch(r.path, -1) {
		params += ", " + m[1] + " string"
		args = strings.ReplaceAll(args, m[0], `" + url.PathEscape(`+m[1]+`) + "`)
	}
	args = strings.TrimSuffix(args, ` + ""`)
	in := "nil"
	switch {
	case r.merge || r.current != nil:
		params, in = params+", patch any", "patch"
	case r.tree:
		params, in = params+", in *"+g.objectOf(r), "in"
	case r.in == of[empty]():
		in = "struct{}{}"
	case r.in != nil:
		params, in = params+", in *"+g.structOf(schema.Describe(r.in)), "in"
	}
	out := ""
	switch {
	case r.gives:
		out = g.objectOf(r)
	case r.out != nil && r.out.Kind() == reflect.Struct:
		out = g.structOf(schema.Describe(r.out))
	case r.out != nil || r.free || r.path == "/openapi.json":
		out = "json.RawMessage"
	}
	head := comment(name+": "+r.method+" "+r.path+". "+r.about+queryComment(r)) + "func (c *Client) " + name + "(" + params + ", options ...Option) "
	switch {
	case r.list:
		return name, head + "iter.Seq2[" + out + ", error] {\nreturn ListAll[" + out + "](ctx, c, " + args + ", options...)\n}\n"
	case out == "":
		return name, head + fmt.Sprintf("error {\nreturn c.Do(ctx, %q, %s, %s, nil, options...)\n}\n", r.method, args, in)
	}
	return name, head + fmt.Sprintf("(*%s, error) {\nreturn result[%s](ctx, c, %q, %s, %s, options)\n}\n", out, out, r.method, args, in)
}

// queryComment lists the query parameters of a row.
func queryComment(r *row) string {
	var names []string
	for _, p := range r.query {
		names = append(names, p.name)
	}
	if len(names) == 0 {
		return ""
	}
	return " Query parameters: " + strings.Join(names, ", ") + "."
}

// methodName returns the name of the method of a row: ListUsers, GetUser, RenewOrder.
func methodName(a *API, r *row) string {
	if name := clientMethods[r.method+" "+r.path]; name != "" {
		return name
	}
	parts := strings.Split(strings.Trim(r.path, "/"), "/")
	last := parts[len(parts)-1]
	verb := map[string]string{http.MethodGet: "Get", http.MethodPost: "Create", http.MethodPut: "Replace", http.MethodPatch: "Update", http.MethodDelete: "Delete"}[r.method]
	if r.method == http.MethodPost && slices.Contains(actions, last) {
		verb, parts = camel(last), parts[:len(parts)-1]
	}
	noun := ""
	for i, part := range parts {
		switch {
		case part[0] == '{':
		case i == 0 && part == "settings":
			return verb + camel(parts[1]) + "Settings"
		case r.list && i == len(parts)-1:
			noun, verb = noun+camel(part), "List"
		case r.method == http.MethodPost && verb == "Create", i+1 < len(parts) && parts[i+1][0] == '{', verb == camel(last):
			noun += camel(singular(part))
		default:
			noun += camel(part)
		}
	}
	return verb + noun
}

// clientFiles returns the generated files of package client by their paths.
func clientFiles(t *testing.T, a *API, comments *schema.Comments) map[string]string {
	g := &goClient{a: a, comments: comments}
	types, operations, err := g.files()
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{"../../../client/types.gen.go": types, "../../../client/operations.gen.go": operations}
}
