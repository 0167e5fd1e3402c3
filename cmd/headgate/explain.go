package main

import (
	"context"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"headgate/client"
	"headgate/internal/plan"
	"headgate/internal/server/target"
)

func newExplain() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain METHOD URL | tcp://HOST:PORT | udp://HOST:PORT",
		Short: "Explain how a request is handled",
		Long: `explain shows which port, proxy and route handle a request and why each other candidate was
not selected, the filters in order, the candidate servers, and the exact request head that
each would receive. It uses the code that handles requests, but sends nothing and opens no
port. The port number in the URL selects the port; if an https and an http3 port have the
same number, --http3 selects the second. With tcp:// or udp:// it shows which TCP or UDP
proxy handles a connection, and which server; on an https port the host is the TLS server
name.

With --as it shows whether a gate allows a person or a token, and which rule decides. Write a
person as NAME, PROVIDER/ID or an e-mail address, and a token as token:NAME. It implies
--running.

With --cache it sends one GET to a server of the route, and shows whether the cache stores the
response: the header field and the rule that decide, and what to change. Nothing is stored. It
implies --running, and requires the role editor.

explain reads the configuration files. To include proxies discovered from containers, use
--running, which queries the running headgate.` + strings.Replace(reachHelp, "The command connects", "With --running, the command connects", 1),
		Example: `  headgate explain GET http://shop.example.com/api/users?page=2
  headgate explain --config headgate.yaml --from 192.0.2.1 -H 'Accept: text/html' GET http://shop.example.com:8080/
  headgate explain --running GET https://wiki.example.com/
  headgate explain --as ann GET https://wiki.example.com/
  headgate explain --cache GET https://shop.example.com/
  headgate explain tcp://db.example.com:5432
  headgate explain --running udp://192.0.2.1:53`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 && isStream(args[0]) {
				return nil
			}
			if len(args) != 2 {
				return usage("expected METHOD and URL, like GET http://shop.example.com/api, got %d arguments", len(args))
			}
			return nil
		},
	}
	file := addConfig(cmd)
	headers := cmd.Flags().StringArrayP("header", "H", nil, "`NAME:VALUE` of a request header; may be repeated")
	from := cmd.Flags().String("from", "127.0.0.1", "`IP` address of the client")
	state := cmd.Flags().String("state", "", "state `DIR` of a running headgate, to read its sticky cookie key; nothing is written there")
	_ = cmd.MarkFlagDirname("state") // the flag exists
	running := cmd.Flags().Bool("running", false, "query the running headgate instead of reading the configuration files")
	as := cmd.Flags().String("as", "", "`PERSON` or token:NAME for which a gate decides; implies --running")
	cached := cmd.Flags().Bool("cache", false, "request the response from a server, and explain whether the cache stores it; implies --running")
	r := &reach{cmd: cmd, config: file, state: state}
	r.addAddress()
	http3 := cmd.Flags().Bool("http3", false, "explain the request for an HTTP/3 client")
	output := addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		*running = *running || *as != "" || *cached
		if cmd.Flags().Changed("admin") && !*running {
			return usage("--admin requires --running")
		}
		if len(args) == 1 && *cached {
			return usage("--cache requires an http or https URL")
		}
		if len(args) == 1 {
			if !*running {
				r = nil
			}
			return explainStream(cmd, args[0], *from, *file, output.value, r)
		}
		q, err := parseQuestion(args[0], args[1], *headers, *from)
		if err != nil {
			return err
		}
		if q.HTTP3 = *http3; q.HTTP3 && q.Scheme != "https" {
			return usage("HTTP/3 requires an https URL")
		}
		explain := func() (plan.Explanation, error) { return explainDocuments(cmd, *file, *state, q) }
		if *running {
			explain = func() (plan.Explanation, error) { return explainRunning(cmd.Context(), r, q, *as, *cached) }
		}
		e, err := explain()
		if err != nil {
			return err
		}
		if output.value == "json" {
			return writeJSON(cmd, e)
		}
		_, err = io.WriteString(cmd.OutOrStdout(), e.Text())
		return err
	}
	return cmd
}

// explainDocuments explains a request with configuration files.
func explainDocuments(cmd *cobra.Command, file, state string, q plan.Question) (plan.Explanation, error) {
	_, documents, err := readDocuments(cmd, file)
	if err != nil {
		return plan.Explanation{}, err
	}
	p, problems := loadPlan(documents, state)
	if len(problems) > 0 {
		return plan.Explanation{}, printProblems(cmd, problems)
	}
	defer p.Retire(nil)
	e := p.Explain(q)
	e.Notes = append(e.Notes, undiscovered(p)...)
	return e, nil
}

// explainRunning explains a request with the running headgate.
func explainRunning(ctx context.Context, r *reach, q plan.Question, as string, cached bool) (e plan.Explanation, err error) {
	to, err := r.open(ctx)
	if err != nil {
		return e, err
	}
	defer to.close()
	in := &client.ExplainInput{Method: q.Method, URL: q.Scheme + "://" + q.Authority + q.Target, From: q.From.String(), HTTP3: q.HTTP3, As: as}
	for _, f := range q.Fields {
		in.Headers = append(in.Headers, f[0]+": "+f[1])
	}
	path := "/explain"
	if cached {
		path = "/cache/explain"
	}
	if err = to.Do(ctx, http.MethodPost, path, in, &e); cached && err == nil && e.Stores == nil {
		e.Notes = append(e.Notes, uncached(&e))
	}
	return e, err
}

// uncached returns why no response was requested for the cache.
func uncached(e *plan.Explanation) string {
	switch {
	case e.Route == "":
		return "nothing is cached: no route handles the request"
	case e.Answer != nil && e.Cache == nil:
		return "nothing is cached: headgate itself responds"
	}
	return "nothing is cached: the route has no cache; add cache: {} to the route or its proxy"
}

// undiscovered returns a note if the configuration files are not the whole configuration.
func undiscovered(p *plan.Plan) []string {
	if len(p.Config().Discovery.Providers()) == 0 {
		return nil
	}
	return []string{"proxies from discovery are not included; use --running to include them"}
}

// parseQuestion reads the arguments and flags of explain. The path is taken as
// it is written: what headgate makes of it is part of the answer.
func parseQuestion(method, address string, headers []string, from string) (q plan.Question, err error) {
	q.Method = method
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return q, usage("invalid URL %q: expected a URL like http://shop.example.com/api", address)
	}
	if q.Scheme = strings.ToLower(scheme); q.Scheme != "http" && q.Scheme != "https" {
		return q, usage("invalid URL %q: the scheme must be http or https", address)
	}
	rest, _, _ = strings.Cut(rest, "#") // a client never sends a fragment
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	q.Authority, q.Target = rest[:end], rest[end:]
	if q.Authority == "" {
		return q, usage("invalid URL %q: no host", address)
	}
	if !strings.HasPrefix(q.Target, "/") {
		q.Target = "/" + q.Target
	}
	q.Authority = asciiAuthority(q.Authority)
	for _, h := range headers {
		name, value, ok := strings.Cut(h, ":")
		if !ok || strings.TrimSpace(name) != name || name == "" {
			return q, usage("invalid header %q: expected name:value", h)
		}
		q.Fields = append(q.Fields, [2]string{name, strings.TrimSpace(value)})
	}
	if q.From, err = netip.ParseAddr(from); err != nil {
		return q, usage("invalid client address %q: expected an address like 192.0.2.1", from)
	}
	return q, nil
}

// asciiAuthority writes a host of a URL that is not in ASCII as browsers send it.
func asciiAuthority(authority string) string {
	name, port, named := strings.Cut(authority, ":")
	if strings.IndexFunc(name, func(r rune) bool { return r > unicode.MaxASCII }) < 0 {
		return authority
	}
	ascii, fault := target.Host(name)
	if fault != nil {
		return authority
	}
	if named {
		ascii += ":" + port
	}
	return ascii
}
