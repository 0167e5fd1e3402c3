package main

import (
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"headgate/internal/control"
)

func newServer() *cobra.Command {
	cmd := group("server", "Drain, disable and enable servers", `server decides at run time whether a server gets clients. No document is touched. What is
decided lasts over changes of the configuration that leave the server where it is, and over
restarts, until it is enabled, or the time of --for is over. The status, metrics and events
show it.`+reachHelp)
	cmd.AddCommand(
		newServerVerb("drain", "Give a server no new clients", `drain gives a server no new clients. Clients whose sticky cookie names it go on, and so do
requests, connections and sessions that run. An event server.drained with the state drained
tells when nothing runs any more.`, true),
		newServerVerb("disable", "Give a server nobody", `disable gives a server no clients at all, not even those whose sticky cookie names it. What
runs on it ends by itself.`, true),
		newServerVerb("enable", "Give a server its clients again", `enable ends drain and disable.`, false),
		newServerList(),
	)
	return cmd
}

// serverHelp tells how servers are named.
const serverHelp = `

SERVER is its address as the configuration has it, such as http://10.0.0.7:3000; its host and
port are enough if no other server of the proxy has them. It is meant on all routes.`

func newServerVerb(verb, short, long string, timed bool) *cobra.Command {
	cmd := &cobra.Command{
		Use:   verb + " PROXY SERVER",
		Short: short,
		Long:  long + serverHelp + reachHelp,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage("want the proxy and the server, have %d arguments", len(args))
			}
			return nil
		},
	}
	cmd.Example = "  headgate server " + verb + " shop 10.0.0.7:3000"
	r, output := addReach(cmd), addOutput(cmd)
	kind := &choice{"", []string{"proxies", "tcp_proxies", "udp_proxies"}}
	cmd.Flags().Var(kind, "kind", "kind of the proxy, where proxies of several kinds have its name")
	why := cmd.Flags().String("why", "", "`TEXT` that events and the audit tell")
	span := new(string)
	if timed {
		cmd.Example += "\n  headgate server " + verb + " shop http://10.0.0.7:3000 --for 10m --why 'new disk'"
		span = cmd.Flags().String("for", "", "`DURATION` after which it ends by itself, like 10m; without it it does not")
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		in := map[string]string{"proxy": args[0], "server": args[1], "kind": kind.value, "why": *why}
		if *span != "" {
			if d, err := longDuration(*span); err != nil || d <= 0 {
				return usage("invalid duration %q, want one like 10m or 2h", *span)
			} else {
				in["for"] = d.String()
			}
		}
		for name, value := range in {
			if value == "" {
				delete(in, name)
			}
		}
		to, err := r.open(cmd.Context())
		if err != nil {
			return err
		}
		defer to.close()
		var s control.HeldServer
		if err := to.ask(cmd.Context(), http.MethodPost, "/servers/"+verb, in, &s); err != nil {
			return err
		}
		if output.value == "json" {
			return writeJSON(cmd, s)
		}
		line := fmt.Sprintf("%s of proxy %s is %s", s.Server, s.Proxy, s.Hold)
		if !s.Until.IsZero() {
			line += " until " + s.Until.Local().Format(time.DateTime)
		}
		if s.Hold != control.Enabled {
			line += fmt.Sprintf("; %d run on it", s.Active)
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), printable(line))
		return err
	}
	return cmd
}

func newServerList() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List servers that are drained or disabled",
		Long:  `list shows the servers that operators drain or have disabled.` + reachHelp,
		Args:  noArguments,
	}
	r, output := addReach(cmd), addOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		to, err := r.open(cmd.Context())
		if err != nil {
			return err
		}
		defer to.close()
		var page struct {
			Items []control.HeldServer `json:"items"`
		}
		if err := to.ask(cmd.Context(), http.MethodGet, "/servers/held?limit=1000", nil, &page); err != nil {
			return err
		}
		if output.value == "json" {
			return writeJSON(cmd, page.Items)
		}
		t := newTable(cmd.OutOrStdout(), "PROXY", "SERVER", "STATE", "RUNNING", "SINCE", "UNTIL", "WHO", "WHY")
		for _, s := range page.Items {
			until := "-"
			if !s.Until.IsZero() {
				until = s.Until.Local().Format(time.DateTime)
			}
			t.row(s.Proxy, s.Server, s.Hold, fmt.Sprint(s.Active), ago(s.Since), until, orNone(s.Who), orNone(s.Why))
		}
		return t.end()
	}
	return cmd
}
