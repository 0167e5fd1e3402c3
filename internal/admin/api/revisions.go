package api

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"headgate/internal/config"
	"headgate/internal/config/diff"
	"headgate/internal/control"
	"headgate/internal/control/review"
	"headgate/internal/operator"
	"headgate/internal/plan"
	"headgate/internal/store/history"
)

func itoa(n int) string { return strconv.Itoa(n) }

// revisionRows are the operations on revisions and on the running configuration.
func (a *API) revisionRows() []row {
	const get, post = http.MethodGet, http.MethodPost
	return []row{
		{method: get, path: "/revisions", access: viewer, out: of[revisionBody](), list: true, query: revisionQuery, handle: a.revisions,
			about: "Lists the stored revisions, newest first."},
		{method: get, path: "/revisions/{number}", access: admin, out: of[revisionBody](), handle: a.revision,
			about: "Returns one revision with its configuration files."},
		{method: get, path: "/revisions/{number}/diff/{other}", may: []int{409}, access: viewer, out: of[differenceBody](), handle: a.difference,
			about: "Returns the differences from this revision to another one, which may be `current`."},
		{method: post, path: "/revisions/{number}/rollback", access: editor, in: of[empty](), out: of[changeBody](), match: true, write: true, handle: withBody(a.rollBack),
			about: "Applies the configuration files of a revision again, as a new revision."},
		{method: post, path: "/confirm", may: []int{409}, access: editor, in: of[confirmInput](), out: of[confirmBody](), dry: true, handle: withBody(a.confirm),
			about: "Confirms the change that waits for confirmation."},
		{method: post, path: "/revert", may: []int{409}, access: editor, in: of[confirmInput](), out: of[confirmBody](), dry: true, handle: withBody(a.revert),
			about: "Reverts the change that waits for confirmation immediately."},
		{method: get, path: "/status", access: viewer, area: areaStatus, ofNode: true, query: statusQuery, out: of[statusBody](), handle: a.status,
			about: "Shows the status of ports, proxies, servers, certificates and discovery, and a change that waits for confirmation."},
		{method: get, path: "/summary", access: viewer, area: areaStatus, ofNode: true, out: of[summaryBody](), handle: a.summary,
			about: "Counts the proxies by state and their servers by health, and names the proxies that need attention."},
		{method: post, path: "/explain/stream", access: viewer, area: areaStatus, in: of[explainStreamInput](), out: of[plan.StreamExplanation](), dry: true, handle: withBody(a.explainStream),
			about: "Shows which TCP or UDP proxy would accept a connection, why, and to which server it would be forwarded. Nothing is sent."},
		{method: post, path: "/explain", access: viewer, area: areaStatus, in: of[explainInput](), out: of[plan.Explanation](), dry: true, handle: withBody(a.explain),
			about: "Shows how a request would be handled: its route, the filters, the server. Nothing is sent. Only admins see the request headers that servers get."},
	}
}

var revisionQuery = []parameter{
	{name: "limit", about: "The maximum number of entries, up to 1000.", kind: "integer"},
	{name: "cursor", about: "The position to continue at: `next` of the previous page.", kind: "integer"},
}

var statusQuery = []parameter{
	{name: "proxy", about: "The name of one proxy, to show it in full."},
	{name: "proxies", about: "Whether to include proxies, of which there can be many; the default is true.", kind: "boolean"},
}

// revisionBody is a revision.
type revisionBody struct {
	// Number grows with every revision.
	Number int `json:"number"`
	// When is when it was applied.
	When time.Time `json:"when"`
	// Who is the operator, "" if unknown.
	Who string `json:"who,omitempty"`
	// Why is the reason that the operator gave.
	Why string `json:"why,omitempty"`
	// Via is the interface: api, console, file, cli, docker, http or agent.
	Via string `json:"via"`
	// Changes are the objects that were added, changed or removed, each as KIND/NAME; * for
	// very many. It is absent where that is not known.
	Changes []string `json:"changes,omitempty"`
	// Cutover is whether the revision moved ports to or from the addresses of another proxy.
	Cutover bool `json:"cutover,omitempty"`
	// State is applied, confirmed or rolled_back.
	State string `json:"state"`
	// ETag is that of the configuration as it was.
	ETag string `json:"etag"`
	// Documents are the texts; a list of revisions has the names only.
	Documents []revisionDocument `json:"documents"`
}

// revisionDocument is a document of a revision.
type revisionDocument struct {
	// Name is the name of the file.
	Name string `json:"name"`
	// Size is how many bytes it has.
	Size int `json:"size"`
	// Text is its content.
	Text string `json:"text,omitempty"`
}

func showRevision(r history.Revision) revisionBody {
	b := revisionBody{r.Number, r.When, r.Who, r.Why, r.Via, r.Changes, r.Cutover != nil, string(r.State), control.ETagOf(r), []revisionDocument{}}
	for _, d := range r.Documents {
		b.Documents = append(b.Documents, revisionDocument{Name: d.Name, Size: d.Size})
	}
	return b
}

// revisions lists revisions.
func (a *API) revisions(c *call) (any, error) {
	if a.Control == nil {
		return page{Items: []any{}}, nil
	}
	n := max(c.number("limit", defaultPage, maxPage), 1)
	items := []revisionBody{}
	list := a.Control.Revisions(c.number("cursor", 0, math.MaxInt), n+1)
	for _, r := range list[:min(n, len(list))] {
		items = append(items, showRevision(r))
	}
	p := page{Items: items}
	if len(list) > n {
		p.Next = itoa(list[n-1].Number)
	}
	return p, nil
}

// numbered returns the revision that a part of the path names.
func (a *API) numbered(c *call, part string) (history.Revision, config.Documents, error) {
	text := c.rq.PathValue(part)
	number, err := strconv.Atoi(text)
	if err != nil || number <= 0 || a.Control == nil {
		return history.Revision{}, config.Documents{}, refuse(operator.CodeNotFound, "", "there is no such revision", "")
	}
	r, docs, err := a.Control.Revision(number)
	if errors.Is(err, history.ErrUnknown) {
		err = refuse(operator.CodeNotFound, "", fmt.Sprintf("there is no revision %d, or it is not kept any more", number), "")
	}
	return r, docs, err
}

// revision gives one revision.
func (a *API) revision(c *call) (any, error) {
	r, docs, err := a.numbered(c, "number")
	if err != nil {
		return nil, err
	}
	b := showRevision(r)
	for i, d := range docs.List {
		b.Documents[i].Text = string(d.Data)
	}
	return b, nil
}

// differenceBody is what one configuration has otherwise than another.
type differenceBody struct {
	// Changes are the objects that are not the same, with their fields.
	Changes []diff.ObjectChange `json:"changes"`
	// Plan describes the change from one revision to the other.
	Plan *review.Review `json:"plan"`
}

// compared compares two configurations.
func compared(before, after *config.Config) differenceBody {
	d := diff.Compare(before, after)
	return differenceBody{d.Objects, review.Of(review.Change{Before: before, After: after, Difference: d})}
}

// comparePatience is how long a comparison waits for its turn.
const comparePatience = 10 * time.Second

// difference compares two revisions. For large ones, reading and comparing takes processor
// time, so that only one comparison runs at a time: viewers must not slow down the serving
// of requests.
func (a *API) difference(c *call) (any, error) {
	wait := time.NewTimer(comparePatience)
	defer wait.Stop()
	select {
	case a.comparing <- struct{}{}:
		defer func() { <-a.comparing }()
	case <-wait.C:
		return nil, refuse(operator.CodeOverloaded, "", "too many revisions are being compared", "try again")
	case <-c.rq.Context().Done():
		return nil, c.rq.Context().Err()
	}
	_, docs, err := a.numbered(c, "number")
	if err != nil {
		return nil, err
	}
	before, err := loaded(docs)
	if err != nil {
		return nil, err
	}
	if c.rq.PathValue("other") == "current" {
		now, err := a.running()
		if err != nil {
			return nil, err
		}
		return compared(before, now), nil
	}
	if _, docs, err = a.numbered(c, "other"); err != nil {
		return nil, err
	}
	after, err := loaded(docs)
	if err != nil {
		return nil, err
	}
	return compared(before, after), nil
}

// loaded parses files of an earlier revision. Variables or files that they refer to may no
// longer exist.
func loaded(docs config.Documents) (*config.Config, error) {
	cfg, _, wrong := config.LoadDocuments(docs, nil)
	if len(wrong) > 0 {
		p := problems(wrong, "")
		p.Status, p.Title, p.Code = http.StatusConflict, "The change could not be applied", "not_applied"
		return nil, p
	}
	return cfg, nil
}

// rollBack applies the files of a revision again.
func (a *API) rollBack(c *call, _ *empty) (any, error) {
	r, docs, err := a.numbered(c, "number")
	if err != nil {
		return nil, err
	}
	e := &edit{call: c, action: "config.roll_back"}
	e.make = func(config.Documents, *config.Config) (config.Documents, error) { return docs, nil }
	if c.text("why") == "" {
		e.why = fmt.Sprintf("back to revision %d", r.Number)
	}
	return e.apply()
}

// confirmInput is the change to confirm.
type confirmInput struct {
	// Revision is the revision to confirm or revert; the default is the one that waits.
	Revision string `json:"revision,omitempty" max:"32"`
}

// confirmBody is the change that was confirmed or reverted.
type confirmBody struct {
	// Revision is the one that waited.
	Revision string `json:"revision"`
}

// confirm makes the change that waits stay.
func (a *API) confirm(c *call, in *confirmInput) (any, error) {
	if a.Control == nil {
		return nil, nothingPending()
	}
	p := a.Control.Pending()
	if p == nil || in.Revision != "" && strings.TrimLeft(in.Revision, "0") != strings.TrimLeft(p.Revision, "0") {
		return nil, nothingPending()
	}
	if err := c.mayEndRestore(); err != nil {
		return nil, err
	}
	if err := c.mayConfirm(p.Revision); err != nil {
		return nil, err
	}
	if c.dryRun {
		return confirmBody{p.Revision}, nil
	}
	record := c.who.Audit("config.confirm", "revision "+p.Revision, "", nil, nil)
	if err := a.Control.ConfirmRevision(c.cause(), p.Revision, record); errors.Is(err, control.ErrNothingPending) {
		return nil, nothingPending()
	} else if err != nil {
		return nil, err
	}
	return confirmBody{p.Revision}, nil
}

// revert takes the change that waits back.
func (a *API) revert(c *call, in *confirmInput) (any, error) {
	if a.Control == nil {
		return nil, nothingPending()
	}
	p := a.Control.Pending()
	if p == nil || in.Revision != "" && strings.TrimLeft(in.Revision, "0") != strings.TrimLeft(p.Revision, "0") {
		return nil, nothingPending()
	}
	if err := c.mayEndRestore(); err != nil {
		return nil, err
	}
	revert := a.Control.RevertRevision
	if c.dryRun {
		revert = a.Control.TryRevert
	}
	refused := (*problem)(nil)
	if err := revert(p.Revision, c.mayRevert); errors.As(err, &refused) {
		return nil, refused
	} else if errors.Is(err, control.ErrNothingPending) {
		return nil, nothingPending()
	} else if errors.Is(err, control.ErrEdited) {
		return nil, refuse("nothing_pending", "", err.Error(), "roll back to the revision before, which takes the edit back too")
	} else if err != nil {
		return nil, refuse("not_applied", "", err.Error(), "it is tried again when the time to confirm has passed")
	}
	if !c.dryRun {
		c.note("config.revert", "revision "+p.Revision, "")
	}
	return confirmBody{p.Revision}, nil
}

// mayConfirm rejects that an operator who is not an admin confirms a change that needs one.
// If the change cannot be reverted any more, the caller reports that.
func (c *call) mayConfirm(revision string) error {
	if c.who.Role.AtLeast(operator.Admin) && c.mayGrant() {
		return nil
	}
	refused := (*problem)(nil)
	if err := c.api.Control.TryRevert(revision, func(now, before *config.Config) error {
		return (&edit{call: c}).mayBeHost(before, now)
	}); errors.As(err, &refused) {
		return refused
	}
	return nil
}

// mayRevert rejects that an operator who is not an admin reverts what only admins may
// change.
func (c *call) mayRevert(now, after *config.Config) error {
	if !c.who.Role.AtLeast(operator.Admin) && !sameAdmin(now, after) {
		return adminOnly("")
	}
	return c.grantsNothing(now, after, "")
}

// mayEndRestore rejects that an operator who is not an admin confirms or reverts a restore,
// which replaces the users.
func (c *call) mayEndRestore() error {
	if c.who.Role.AtLeast(operator.Admin) {
		return nil
	}
	if restore, err := c.api.Control.RestorePending(c.rq.Context()); err != nil || !restore {
		return err
	}
	return refuse(operator.CodeForbidden, "", "the change that waits is a restore, which has replaced the users: only an admin may decide about it", "ask an admin")
}

func nothingPending() error {
	return refuse("nothing_pending", "", "no such change waits to be confirmed", "it was confirmed or reverted already; see the revisions")
}

// explainInput is a request to think through.
type explainInput struct {
	// Method is the method of the request; without it GET.
	Method string `json:"method,omitempty" max:"64"`
	// URL is its address: `https://shop.example.com/api?x=1`.
	URL string `json:"url" required:"true" max:"8192"`
	// Headers are further header fields, each as `name: value`.
	Headers []string `json:"headers,omitempty" max:"100"`
	// From is the client's address; without it 127.0.0.1.
	From string `json:"from,omitempty" max:"64"`
	// HTTP3 restricts the explanation to ports that serve HTTP/3.
	HTTP3 bool `json:"http3,omitempty"`
	// As is the person or token for which the gate decides: NAME, PROVIDER/ID or an e-mail
	// address of a person, or token:NAME. Without it the client has not signed in.
	As string `json:"as,omitempty" max:"512"`
}

// explain serves how a request would be handled.
func (a *API) explain(c *call, in *explainInput) (any, error) {
	if _, err := a.running(); err != nil {
		return nil, err
	}
	q, err := in.question()
	if err != nil {
		return nil, err
	}
	if in.As != "" {
		if q.As = a.Control.Gate().Rehearsal(in.As); q.As == nil {
			return nil, refuse("invalid", "/as", "no such person or token is known", "\"headgate person list\" and \"headgate gate token list\" list them; people of providers are known while they have a session")
		}
	}
	q.Fetch = c.row.path == pathExplainCache && !c.dryRun
	e := a.Control.Plan().Explain(q)
	if q.Fetch {
		c.note("cache.explain", e.Proxy, e.Host+e.Path)
	}
	if !c.who.Role.AtLeast(operator.Admin) {
		for i := range e.Servers {
			e.Servers[i].Head = "" // it contains the values of ${…}
		}
	}
	return e, nil
}

// explainStreamInput is a connection, or the first datagram of a session, to explain.
type explainStreamInput struct {
	// Address is what the client connects to: `tcp://db.example.com:5432`, or `udp://` and an
	// address. On an https port the host is the TLS server name.
	Address string `json:"address" required:"true" max:"512"`
	// From is the client's address; without it 127.0.0.1.
	From string `json:"from,omitempty" max:"64"`
}

// explainStream serves how a connection would be handled.
func (a *API) explainStream(_ *call, in *explainStreamInput) (any, error) {
	if _, err := a.running(); err != nil {
		return nil, err
	}
	q, err := plan.ParseStream(in.Address, cmp.Or(in.From, "127.0.0.1"))
	if err != nil {
		return nil, refuse("invalid", "", err.Error(), "")
	}
	return a.Control.Plan().ExplainStream(q), nil
}

func (in *explainInput) question() (q plan.Question, err error) {
	scheme, rest, ok := strings.Cut(in.URL, "://")
	scheme = strings.ToLower(scheme)
	rest, _, _ = strings.Cut(rest, "#")
	end := strings.IndexAny(rest+"/", "/?")
	if !ok || scheme != "http" && scheme != "https" || end == 0 || strings.ContainsAny(in.URL, " \r\n\t\x00") {
		return q, refuse("invalid", "/url", "not an http or https URL", "write one like https://shop.example.com/api")
	}
	q = plan.Question{Method: strings.ToUpper(in.Method), Scheme: scheme, Authority: rest[:end], Target: rest[end:], HTTP3: in.HTTP3}
	if q.Method == "" {
		q.Method = http.MethodGet
	}
	if !strings.HasPrefix(q.Target, "/") {
		q.Target = "/" + q.Target
	}
	for i, h := range in.Headers {
		name, value, ok := strings.Cut(h, ":")
		if !ok || name == "" || strings.ContainsAny(h, "\r\n\x00") || strings.TrimSpace(name) != name {
			return q, refuse("invalid", "/headers/"+itoa(i), "not a header", "write it as name: value")
		}
		q.Fields = append(q.Fields, [2]string{name, strings.TrimSpace(value)})
	}
	if in.From != "" {
		if q.From, err = netip.ParseAddr(in.From); err != nil {
			return q, refuse("invalid", "/from", "not an IP address", "write one like 192.0.2.1")
		}
	}
	return q, nil
}
