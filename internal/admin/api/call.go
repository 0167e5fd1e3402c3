package api

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"headgate/internal/config"
	"headgate/internal/operator"
	"headgate/internal/schema"
	"headgate/internal/store"
)

// The access that a row wants.
type access string

const (
	public access = "public" // no sign-in required
	viewer access = "viewer"
	editor access = "editor"
	admin  access = "admin"
)

// row is one line of the table: one thing that the API does.
type row struct {
	method, path string
	// access is the lowest role, area the scope that a token needs.
	access access
	area   string
	// about is what it does, in one sentence.
	about string
	// query are the parameters that it takes.
	query []parameter
	// in and out are structs, nil for no body. list means that the response is a list of
	// out.
	in, out reflect.Type
	list    bool
	// status is the status of a success; 0 means 200, or 204 without a body.
	status int
	// match means that If-Match is required.
	match bool
	// dry means that dry_run is accepted. noDry is the reason why not, for other rows that
	// are not GET.
	dry   bool
	noDry string
	// current returns the object that a patch is merged with.
	current func(*call) (any, error)
	// handle does it. What it returns is written as JSON.
	handle func(*call) (any, error)
	// stream does it when the answer is a stream: of events, or of the type media.
	stream func(*call) error
	media  string
	// upload is the type of a body that handle reads itself, "" for none.
	upload string

	// kind is the kind of configuration object that the row reads or changes, or nil; gives
	// means that the response is such an object.
	kind  *config.Kind
	gives bool
	// tree means that the body is kept as a JSON value, which the configuration validates;
	// merge means that it is a patch.
	tree, merge bool
	// write means that the row changes configuration files. If-Match then names a text.
	write bool
	// free means that the response is an object whose fields are not described here.
	free bool
	// may lists the statuses of errors beyond those that follow from other fields; steady
	// means that the row depends on nothing that can be unavailable.
	may    []int
	steady bool
	// ofNode means that the row shows the state of one machine, which the parameter node names.
	ofNode bool
	// maxBody is the largest body, 0 for that of all.
	maxBody int64

	input *schema.Object
}

// parameter is one of a query.
type parameter struct {
	name, about string
	kind        string   // integer, boolean, or "" for text
	enum        []string // of a text
}

// call is one request on its way through a row.
type call struct {
	api *API
	row *row
	w   http.ResponseWriter
	rq  *http.Request
	who operator.Identity
	// unknown is why the client could not be identified; only public rows run with it.
	unknown error
	// in points to the struct of the body.
	in any
	// have is what If-Match names.
	have store.Revision
	// tree is the body of a row that keeps it so.
	tree    map[string]any
	newName string // that it gives the object
	// ifMatch is If-Match of a change of the documents: an entity tag, or "*".
	ifMatch string
	// dryRun means that nothing is changed.
	dryRun bool
}

// withBody makes a handler from one that takes the decoded body.
func withBody[In any](h func(*call, *In) (any, error)) func(*call) (any, error) {
	return func(c *call) (any, error) { return h(c, c.in.(*In)) }
}

// object is an answer that has a revision.
type object interface{ revision() store.Revision }

// name returns the {name} of the path.
func (c *call) name() string { return c.rq.PathValue("name") }

// text returns a parameter of the query.
func (c *call) text(name string) string { return c.rq.URL.Query().Get(name) }

// number returns a parameter, which was checked to be one.
func (c *call) number(name string, fallback, max int) int {
	text := c.text(name)
	if text == "" {
		return fallback
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return fallback
	}
	return min(n, max)
}

// checkQuery refuses parameters that the row does not know, and values of another
// kind.
func (c *call) checkQuery() error {
	query := c.rq.URL.Query()
	for name, values := range query {
		i := slices.IndexFunc(c.row.query, func(p parameter) bool { return p.name == name })
		switch {
		case name == "dry_run" && c.row.dry:
			i = len(c.row.query)
		case name == "dry_run" && c.row.noDry != "":
			return refuseParameter("invalid", name, c.row.noDry, "leave it out")
		}
		if i < 0 {
			return refuseParameter("unknown_parameter", clean(name), "the parameter is not known", "")
		}
		if len(values) > 1 || len(values[0]) > 1024 {
			return refuseParameter("invalid", name, "the parameter is set more than once, or is too long", "")
		}
		if i == len(c.row.query) {
			continue
		}
		if err := c.row.query[i].check(values[0]); err != nil {
			return err
		}
	}
	return nil
}

func (p *parameter) check(text string) error {
	switch {
	case text == "":
		return nil
	case p.kind == "integer":
		if n, err := strconv.ParseInt(text, 10, 53); err != nil || n < 0 {
			return refuseParameter("invalid", p.name, "must be an integer", "")
		}
	case p.kind == "boolean" && text != "true" && text != "false":
		return refuseParameter("invalid", p.name, "must be true or false", "")
	case len(p.enum) > 0 && !slices.Contains(p.enum, text):
		return refuseParameter("invalid", p.name, "the value is not known", "write "+strings.Join(p.enum, ", "))
	}
	return nil
}

// precondition reads If-Match (RFC 9110, section 13.1.1): one entity tag of ours, or
// "*".
func (c *call) precondition() error {
	text := strings.TrimSpace(c.rq.Header.Get("If-Match"))
	switch text {
	case "":
		return refuse("precondition_required", "", "the request has no If-Match", "send the ETag of the object that you have seen, or * for any")
	case "*":
		c.have, c.ifMatch = operator.Any, "*"
		return nil
	}
	if c.row.write {
		return c.documentTag(text)
	}
	digits, ok := strings.CutPrefix(text, `"`)
	digits, end := strings.CutSuffix(digits, `"`)
	n, err := strconv.ParseUint(digits, 10, 63)
	if !ok || !end || err != nil || n == 0 {
		return refuse(operator.CodeStale, "", "the ETag in If-Match is none of this object", "read the object again")
	}
	c.have = store.Revision(n)
	return nil
}

// note keeps in the audit what was done to something that no store holds. It is done
// already, so that a failure is only logged.
func (c *call) note(action, object, why string) {
	if err := c.api.Operators.Note(c.rq.Context(), c.who, action, object, why); err != nil {
		c.api.Log.Error("audit record was not kept", "error", err)
	}
}

// tag returns the entity tag of a revision.
func tag(r store.Revision) string { return `"` + strconv.FormatUint(uint64(r), 10) + `"` }

// body reads and checks the body of the request.
func (c *call) body() error {
	patch := c.row.current != nil || c.row.merge
	limit := c.row.maxBody
	if c.row.access == public {
		if err := c.api.Operators.MayTry(c.anonymous()); err != nil {
			return err // before anything is read
		}
		limit = cmp.Or(limit, maxPublicBody)
	}
	v, err := readBody(c.w, c.rq, patch, limit)
	if err != nil {
		return err
	}
	if c.row.tree {
		return c.keepTree(v)
	}
	if patch {
		now, err := c.row.current(c)
		if err != nil {
			return err
		}
		if v, err = merged(now, v); err != nil {
			return err
		}
	}
	c.in, err = fill(v, c.row.input)
	return err
}

// merged returns the object with a patch in it.
func merged(now, patch any) (any, error) {
	if _, ok := patch.(map[string]any); !ok {
		return nil, refuse("invalid", "", "must be an object", "")
	}
	data, err := json.Marshal(now)
	if err != nil {
		return nil, err
	}
	old, err := parse(data)
	if err != nil {
		return nil, err
	}
	return mergePatch(old, patch), nil
}

// page is a part of a list.
type page struct {
	// Items are the entries of the page.
	Items any `json:"items"`
	// Next is where the next page begins, "" if this is the last.
	Next string `json:"next,omitempty"`
}

// paging are the parameters of a list in memory.
func paging(sort ...string) []parameter {
	var orders []string
	for _, name := range sort {
		orders = append(orders, name, "-"+name)
	}
	return []parameter{
		{name: "limit", about: "The maximum number of entries, up to 1000.", kind: "integer"},
		{name: "cursor", about: "The position to continue at: `next` of the previous page."},
		{name: "q", about: "Only entries whose name or description contains this text."},
		{name: "sort", about: "The field to sort by; a - in front sorts in descending order.", enum: orders},
	}
}

const (
	defaultPage = 100
	maxPage     = 1000
)

// listed is an entry of a list in memory.
type listed struct {
	name, text string // the name is unique
	keys       map[string]string
	value      any
}

// list returns a page of entries, sorted by name or as the query requires.
func (c *call) list(all []listed) (any, error) {
	q := strings.ToLower(c.text("q"))
	all = slices.DeleteFunc(all, func(e listed) bool {
		return q != "" && !strings.Contains(strings.ToLower(e.name+"\n"+e.text), q)
	})
	field, down := strings.CutPrefix(c.text("sort"), "-")
	slices.SortStableFunc(all, func(a, b listed) int {
		order := strings.Compare(a.keys[field], b.keys[field])
		if order == 0 {
			order = strings.Compare(a.name, b.name)
		}
		if down {
			return -order
		}
		return order
	})
	begin := 0
	if cursor := c.text("cursor"); cursor != "" {
		after, err := base64.RawURLEncoding.DecodeString(cursor)
		if err != nil {
			return nil, badCursor()
		}
		if begin = slices.IndexFunc(all, func(e listed) bool { return e.name == string(after) }) + 1; begin == 0 {
			return nil, badCursor()
		}
	}
	end := min(begin+max(c.number("limit", defaultPage, maxPage), 1), len(all))
	p := page{}
	items := make([]any, 0, end-begin)
	for _, e := range all[begin:end] {
		items = append(items, e.value)
	}
	p.Items = items
	if end < len(all) {
		p.Next = base64.RawURLEncoding.EncodeToString([]byte(all[end-1].name))
	}
	return p, nil
}

func badCursor() error {
	return refuseParameter("invalid", "cursor", "the cursor is not valid any more", "begin with the first page")
}
