package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"headgate/client"
	"headgate/internal/clock"
	"headgate/internal/config"
	"headgate/internal/discovery"
	"headgate/internal/discovery/docker"
	"headgate/internal/file"
	"headgate/internal/operator"
)

const (
	// reportInterval is the time between two reports of an agent without a change.
	reportInterval = 10 * time.Second
	// maxReportPause is the longest pause after reports that failed.
	maxReportPause = 10 * time.Second
	// reportGather is for how long changes of containers are gathered into a report.
	reportGather = time.Second
	// reportTimeout is the maximum time of one report.
	reportTimeout = 20 * time.Second
)

func newAgent() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "agent --to URL --token-file FILE",
		Short: "Report the containers of this machine to headgate on another one",
		Long: `agent reports the labels and published ports of the containers of this machine to headgate on
another machine, which publishes them like its own containers. It only reads from the engine.

The headgate at --to needs an entry of discovery.agent and the token that agent invite makes
for it. If the system does not trust its certificate, pass the --fingerprint that agent invite
prints, or set SSL_CERT_FILE to a file with its authority. When the agent ends, the proxies of its
containers are removed after 60 seconds.`,
		Example: `  headgate agent invite web7
  headgate agent --to https://proxy.example:9080 --token-file /etc/headgate/agent.token`,
		Args: noArguments,
	}
	a := &reporter{}
	cmd.Flags().StringVar(&a.to, "to", "", "`URL` of the admin listener of headgate")
	cmd.Flags().StringVar(&a.tokenFile, "token-file", "", "`FILE` with the token")
	cmd.Flags().StringVar(&a.fingerprint, "fingerprint", "", "`SHA-256` fingerprint of the public key of the admin listener, as headgate status prints it, or of its certificate")
	cmd.Flags().StringVar(&a.endpoint, "endpoint", "unix:///var/run/docker.sock", "`ENDPOINT` of the engine, Docker or Podman")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		a.log = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
		if err := a.open(); err != nil {
			return err
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		return a.run(ctx)
	}
	cmd.AddCommand(newAgentInvite())
	return cmd
}

func newAgentInvite() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "invite NAME",
		Short: "Create the token of an agent and print it",
		Long: `invite creates the token with which the agent of another machine reports its containers for
the entry NAME of discovery.agent, and prints the command for that machine. The token can be used for
nothing else. headgate token revoke NAME ends it.`,
		Example: "  headgate agent invite web7 --address 10.0.0.7",
		Args:    oneName("agent"),
	}
	r, output := addReach(cmd), addOutput(cmd)
	addresses := cmd.Flags().StringSlice("address", nil, "`NETWORK` that the token may be used from; may be repeated; all by default")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		t := client.Token{Name: args[0], Role: "editor", Scopes: []string{"agents"}, Description: "agent of " + args[0]}
		for _, text := range *addresses {
			n, err := network(text)
			if err != nil {
				return usage("invalid network %q: expected a network like 192.0.2.0/24", text)
			}
			t.Addresses = append(t.Addresses, n)
		}
		return r.withRemote(func(ctx context.Context, to *remote) error {
			if err := createToken(ctx, cmd, to, output, t); err != nil || output.value == "json" {
				return err
			}
			state, err := to.GetStatus(ctx, client.Query("proxies", "false"))
			if err != nil {
				return fmt.Errorf("the token was created, but the address of the admin listener is unknown: %w", err)
			}
			fmt.Fprintln(cmd.ErrOrStderr(), agentCommand(to.options.URL, state.Admin, ownAddress()))
			return nil
		})
	}
	return cmd
}

// agentCommand returns how to start an agent. Via is the URL over which a command reaches
// headgate, and own an address of this machine.
func agentCommand(via string, listener *client.AdminListener, own netip.Addr) string {
	if listener == nil {
		return "The admin listener is disabled: set admin.address to an address that the other machine can reach."
	}
	at := listener.Address
	switch {
	case at.Addr().IsUnspecified() && own.IsValid():
		at = netip.AddrPortFrom(own, at.Port())
	case at.Addr().IsLoopback() && !strings.HasPrefix(via, "https:"):
		return fmt.Sprintf("The admin listener is at %s, which the other machine cannot reach: set admin.address to an address that it can.", at)
	}
	base := "https://" + at.String()
	if strings.HasPrefix(via, "https:") {
		base = via
	}
	command := "headgate agent --to " + base + " --token-file agent.token"
	if listener.SelfSigned {
		command += " --fingerprint " + listener.PublicKey
	}
	return "On the other machine, with the token in the file agent.token:\n" + command
}

// reporter is an agent that runs.
type reporter struct {
	to, tokenFile, fingerprint, endpoint string

	log    *slog.Logger
	name   string // of its entry
	remote *remote
	source discovery.Source
}

// open reads the token and opens the engine. It sends nothing.
func (a *reporter) open() error {
	if a.to == "" || a.tokenFile == "" {
		return usage("specify headgate with --to and the token with --token-file")
	}
	data, err := file.Read(a.tokenFile, 4<<10, "no token")
	if err != nil {
		return err
	}
	token := strings.TrimSpace(string(data))
	end := strings.LastIndexByte(token, '_')
	if !operator.IsToken(token) || end < len(operator.TokenPrefix) {
		return fmt.Errorf("%s contains no token; write the text that headgate agent invite prints", a.tokenFile)
	}
	a.name = token[len(operator.TokenPrefix):end]
	base, loopback, err := adminURL(a.to, a.fingerprint != "")
	if err != nil {
		return err
	}
	if !loopback && strings.HasPrefix(base, "http:") {
		return usage("refusing to send a token to %s without encryption; use an https:// URL", a.to)
	}
	trust, err := verifier(a.fingerprint, base, loopback)
	if err != nil {
		return err
	}
	if a.remote, err = newRemote(base, a.to, (&net.Dialer{Timeout: 10 * time.Second}).DialContext); err != nil {
		return err
	}
	a.remote.transport.TLSClientConfig = trust
	options := a.remote.options
	options.Token = token
	if err := a.remote.set(options); err != nil {
		return err
	}
	a.source, err = docker.OpenElsewhere(a.name, &config.Docker{Endpoint: a.endpoint}, discovery.Environment{Log: a.log})
	return err
}

// run reports until ctx ends.
func (a *reporter) run(ctx context.Context) error {
	defer a.remote.close()
	a.source.Start()
	defer a.source.Stop()
	failed, told := 0, ""
	for pause := reportGather; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-a.source.Changed():
			if !clock.Sleep(ctx, reportGather) {
				return nil
			}
		case <-time.After(pause):
		}
		now := a.source.Snapshot()
		if !now.Known && now.State == discovery.Connecting {
			continue
		}
		err := a.report(ctx, now)
		text := ""
		if pause = reportInterval; err != nil {
			pause = min(time.Second<<min(failed, 4), maxReportPause)
			pause += rand.N(pause / 4)
			failed++
			text = err.Error()
		} else {
			failed = 0
		}
		switch {
		case text == told && (failed > 0 || told != "connected"):
		case err != nil && ctx.Err() == nil:
			a.log.Warn("report is not accepted; trying again", "to", a.to, "error", err)
		}
		if err == nil && told != "connected" {
			a.log.Info("headgate accepts the reports", "to", a.to, "objects", len(now.Objects), "issues", len(now.Issues))
			text = "connected"
		}
		told = cmp.Or(text, told)
	}
}

// report sends what is known now.
func (a *reporter) report(ctx context.Context, now *discovery.Snapshot) error {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	r := client.AgentReport{}
	if now.State == discovery.Failed {
		r.Failure, r.Hint = cmp.Or(now.Reason, "the engine is unavailable"), now.Hint
	}
	for _, d := range now.Objects {
		o := client.AgentObject{Kind: d.Kind, Name: d.Name, Container: d.Origin.Container, Label: d.Origin.Label, Created: d.Created, Labels: agentLabels(d.Labels)}
		for _, s := range d.Servers {
			o.Servers = append(o.Servers, client.AgentServer{Address: s.Address, Container: s.Container, Labels: agentLabels(s.Labels)})
		}
		r.Objects = append(r.Objects, o)
	}
	for _, i := range now.Issues {
		r.Issues = append(r.Issues, client.AgentIssue{Container: i.Container, Label: i.Label, Kind: i.Kind, Name: i.Name, Code: string(i.Code), Message: i.Message, Hint: i.Hint})
	}
	err := a.remote.Do(ctx, http.MethodPut, "/discovery/agents/"+url.PathEscape(a.name), r, nil)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no response within %v", reportTimeout)
	}
	return err
}

func agentLabels(all []config.Label) []client.AgentLabel {
	out := make([]client.AgentLabel, len(all))
	for i, l := range all {
		out[i] = client.AgentLabel(l)
	}
	return out
}
