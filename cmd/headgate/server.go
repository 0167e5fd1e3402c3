package main

import (
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"headgate/client"
	"headgate/internal/control"
)

func newServer() *cobra.Command {
	cmd := group("server", "Drain, disable and enable servers", `server takes servers out of service and returns them, without changing the configuration.
The setting survives restarts and configuration changes that keep the server, until the
server is enabled or the time given with --for has passed. Status, metrics and events show
it.`+reachHelp)
	cmd.AddCommand(
		newServerVerb("drain", "Stop sending new clients to a server", `drain stops sending new clients to a server. Clients with a sticky cookie for it, and
requests, connections and sessions in progress, continue. The event server.drained with the
state drained reports that nothing is in progress any more.`, true),
		newServerVerb("disable", "Take a server out of service", `disable takes a server out of service: it receives no requests, not even from clients with a
sticky cookie for it. Requests in progress complete.`, true),
		newServerVerb("enable", "Return a server to service", `enable returns a server that was drained or disabled to service.`, false),
		newServerList(),
	)
	return cmd
}

// serverHelp describes how servers are specified.
const serverHelp = `

SERVER is the address of the server as in the configuration, such as http://10.0.0.7:3000;
its host and port are enough if they are unique in the proxy. The command applies to all
routes of the proxy.`

func newServerVerb(verb, short, long string, timed bool) *cobra.Command {
	cmd := &cobra.Command{
		Use:   verb + " PROXY SERVER",
		Short: short,
		Long:  long + serverHelp + reachHelp,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage("expected PROXY and SERVER, got %d arguments", len(args))
			}
			return nil
		},
	}
	cmd.Example = "  headgate server " + verb + " shop 10.0.0.7:3000"
	r, output := addReach(cmd), addOutput(cmd)
	kind := &choice{"", []string{"proxies", "tcp_proxies", "udp_proxies"}}
	cmd.Flags().Var(kind, "kind", "kind of the proxy, if proxies of several kinds have this name")
	why := cmd.Flags().String("why", "", "`TEXT` recorded in events and the audit log")
	span := new(string)
	if timed {
		cmd.Example += "\n  headgate server " + verb + " shop http://10.0.0.7:3000 --for 10m --why 'new disk'"
		span = cmd.Flags().String("for", "", "`DURATION` after which the server returns to service, like 10m; no limit by default")
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		in := map[string]string{"proxy": args[0], "server": args[1], "kind": kind.value, "why": *why}
		if *span != "" {
			if d, err := longDuration(*span); err != nil || d <= 0 {
				return usage("invalid duration %q: expected a duration like 10m or 2h", *span)
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
		var s client.HeldServer
		if err := to.Do(cmd.Context(), http.MethodPost, "/servers/"+verb, in, &s); err != nil {
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
			line += fmt.Sprintf("; %d in progress", s.Active)
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
		Long:  `list shows the servers that operators have drained or disabled.` + reachHelp,
		Args:  noArguments,
	}
	return withList(cmd, "/servers/held", []string{"PROXY", "SERVER", "STATE", "RUNNING", "SINCE", "UNTIL", "WHO", "WHY"}, func(s *client.HeldServer) []string {
		return []string{s.Proxy, s.Server, s.Hold, fmt.Sprint(s.Active), ago(s.Since), moment(s.Until), orNone(s.Who), orNone(s.Why)}
	})
}
