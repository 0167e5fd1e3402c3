package main

import (
	"context"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"headgate/internal/plan"
	"headgate/internal/server/target"
)

func newExplain() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain METHOD URL | tcp://HOST:PORT | udp://HOST:PORT",
		Short: "Explain how a request is handled",
		Long: `explain tells which port, proxy and route take a request and why each other
candidate lost, the filters in their order, the candidate servers, and the exact head
that each of them would get. It asks the functions that serve requests; nothing is
sent and no port is opened. The port number in the URL says which port is meant; of an
https and an http3 port with one number it is the first, and with --http3 the second.
With tcp:// or udp:// it tells which TCP or UDP proxy takes a connection, and which
server; on an https port the host is the name that a TLS client asks for.

It explains what the documents say, as they stand. What containers name is not among them:
with --running it asks the headgate that runs instead, which knows all that it serves.` + strings.Replace(reachHelp, "It asks", "With --running it asks", 1),
		Example: `  headgate explain GET http://shop.example.com/api/users?page=2
  headgate explain --config headgate.yaml --from 192.0.2.1 -H 'Accept: text/html' GET http://shop.example.com:8080/
  headgate explain --running GET https://wiki.example.com/
  headgate explain tcp://db.example.com:5432`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 && isStream(args[0]) {
				return nil
			}
			if len(args) != 2 {
				return usage("want METHOD and URL, like GET http://shop.example.com/api, have %d arguments", len(args))
			}
			return nil
		},
	}
	file := addConfig(cmd)
	headers := cmd.Flags().StringArrayP("header", "H", nil, "`NAME:VALUE` of a header field that the client sends; may be repeated")
	from := cmd.Flags().String("from", "127.0.0.1", "`IP` address of the client")
	state := cmd.Flags().String("state", "", "state `DIR` of a running headgate, to know its sticky cookies; nothing is written there")
	_ = cmd.MarkFlagDirname("state") // the flag exists
	running := cmd.Flags().Bool("running", false, "ask the headgate that runs, and not the documents")
	r := &reach{cmd: cmd, config: file, state: state}
	r.addAddress()
	http3 := cmd.Flags().Bool("http3", false, "ask as a client of HTTP/3")
	output := addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("admin") && !*running {
			return usage("--admin needs --running")
		}
		if len(args) == 1 {
			if *running {
				return usage("a headgate that runs explains requests only; leave out --running, or give METHOD and URL")
			}
			return explainStream(cmd, args[0], *from, *file, output.value)
		}
		q, err := parseQuestion(args[0], args[1], *headers, *from)
		if err != nil {
			return err
		}
		if q.HTTP3 = *http3; q.HTTP3 && q.Scheme != "https" {
			return usage("HTTP/3 has https URLs only")
		}
		explain := func() (plan.Explanation, error) { return explainDocuments(cmd, *file, *state, q) }
		if *running {
			explain = func() (plan.Explanation, error) { return explainRunning(cmd.Context(), r, q) }
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

// explainDocuments asks what the documents say.
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

// explainRunning asks a headgate that runs.
func explainRunning(ctx context.Context, r *reach, q plan.Question) (e plan.Explanation, err error) {
	to, err := r.open(ctx)
	if err != nil {
		return e, err
	}
	defer to.close()
	in := struct {
		Method  string   `json:"method"`
		URL     string   `json:"url"`
		Headers []string `json:"headers,omitempty"`
		From    string   `json:"from"`
		HTTP3   bool     `json:"http3,omitempty"`
	}{Method: q.Method, URL: q.Scheme + "://" + q.Authority + q.Target, From: q.From.String(), HTTP3: q.HTTP3}
	for _, f := range q.Fields {
		in.Headers = append(in.Headers, f[0]+": "+f[1])
	}
	err = to.ask(ctx, http.MethodPost, "/explain", in, &e)
	return e, err
}

// undiscovered says what the documents alone do not tell.
func undiscovered(p *plan.Plan) []string {
	if len(p.Config().Discovery.Docker) == 0 {
		return nil
	}
	return []string{"what containers name is not known here: --running asks the headgate that runs"}
}

// parseQuestion reads the arguments and flags of explain. The path is taken as
// it is written: what headgate makes of it is part of the answer.
func parseQuestion(method, address string, headers []string, from string) (q plan.Question, err error) {
	q.Method = method
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return q, usage("invalid URL %q, want one like http://shop.example.com/api", address)
	}
	if q.Scheme = strings.ToLower(scheme); q.Scheme != "http" && q.Scheme != "https" {
		return q, usage("invalid URL %q: the scheme is http or https", address)
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
			return q, usage("invalid header %q, want name:value", h)
		}
		q.Fields = append(q.Fields, [2]string{name, strings.TrimSpace(value)})
	}
	if q.From, err = netip.ParseAddr(from); err != nil {
		return q, usage("invalid address %q of the client, want one like 192.0.2.1", from)
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
