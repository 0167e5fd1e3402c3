package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"headgate/internal/config"
	"headgate/internal/source/disk"
)

// The bounds of the status page: how long it may take and how large it may be, in
// bytes.
const (
	statusTimeout = 10 * time.Second
	statusSize    = 256 << 20
)

// statusFlags are the flags of the command status.
type statusFlags struct {
	config, admin *string
	all, watch    *bool
	interval      *time.Duration
	output        *choice
}

func newStatus() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [PROXY]",
		Short: "Show the state of ports, proxies and servers",
		Long: `status asks the admin listener of a headgate that runs on this machine how its
ports, proxies and servers stand. It lists the servers that are not well; --all lists
all of them, and the name of a proxy those of that proxy with their last checks.

The listener is where --admin says, else where the configuration file has it.`,
		Example: `  headgate status
  headgate status shop
  headgate status --watch
  headgate status -o json`,
		Args: cobra.MaximumNArgs(1),
	}
	f := statusFlags{
		config:   addConfig(cmd),
		admin:    cmd.Flags().String("admin", "", "`IP:PORT` of the admin listener"),
		all:      cmd.Flags().BoolP("all", "a", false, "list every server"),
		watch:    cmd.Flags().BoolP("watch", "w", false, "repeat until interrupted"),
		interval: cmd.Flags().Duration("interval", time.Second, "refresh interval of --watch"),
		output:   addOutput(cmd),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		address, err := f.address(cmd)
		if err != nil {
			return err
		}
		proxy := ""
		if len(args) > 0 {
			proxy = args[0]
		}
		if !*f.watch {
			return f.show(cmd.Context(), cmd.OutOrStdout(), address, proxy)
		}
		if *f.interval < 100*time.Millisecond {
			return usage("invalid interval %v, want at least 100ms", *f.interval)
		}
		return f.watchStatus(cmd.Context(), cmd.OutOrStdout(), address, proxy)
	}
	return cmd
}

// address returns where the admin listener is.
func (f *statusFlags) address(cmd *cobra.Command) (string, error) {
	if *f.admin != "" {
		if _, err := netip.ParseAddrPort(*f.admin); err != nil {
			return "", usage("invalid address %q, want one like 127.0.0.1:9080", *f.admin)
		}
		return *f.admin, nil
	}
	path, err := configPath(*f.config)
	if err != nil {
		if cmd.Flags().Changed("config") {
			return "", err
		}
		return adminAddress, nil // no configuration here: where it is by default
	}
	data, err := disk.Read(path)
	if err != nil {
		return "", err
	}
	cfg, _, problems := config.Load(path, data)
	switch {
	case len(problems) > 0:
		return "", fmt.Errorf("%v; --admin says where to ask without a configuration", problems[0])
	case !cfg.Admin.Address.IsValid():
		return "", fmt.Errorf("%s switches the admin listener off (admin.address)", path)
	case cfg.Admin.Address.Addr().IsUnspecified():
		return fmt.Sprintf("127.0.0.1:%d", cfg.Admin.Address.Port()), nil
	}
	return cfg.Admin.Address.String(), nil
}

// show prints the status once.
func (f *statusFlags) show(ctx context.Context, out io.Writer, address, proxy string) error {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	target := "/status"
	if proxy != "" {
		target += "?proxy=" + url.QueryEscape(proxy)
	}
	code, body, err := askAdmin(ctx, address, target, statusSize)
	switch {
	case err != nil:
		return unasked(address, err)
	case code != http.StatusOK:
		return errors.New(strings.TrimSpace(string(body)))
	case f.output.value == "json":
		_, err = out.Write(body)
		return err
	}
	var s statusPage
	if err := json.Unmarshal(body, &s); err != nil {
		return fmt.Errorf("read the status of %s: %w", address, err)
	}
	return s.print(out, *f.all || proxy != "", proxy != "")
}

// watchStatus prints the status until it is interrupted. It goes on when headgate
// does not answer for a while.
func (f *statusFlags) watchStatus(ctx context.Context, out io.Writer, address, proxy string) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	tick := time.NewTicker(*f.interval)
	defer tick.Stop()
	for {
		var page strings.Builder
		if err := f.show(ctx, &page, address, proxy); err != nil && ctx.Err() == nil {
			fmt.Fprintf(&page, "%v\n", err)
		}
		if ctx.Err() != nil {
			return nil
		}
		if isTerminal(out) {
			fmt.Fprint(out, "\x1b[H\x1b[2J")
		}
		if _, err := io.WriteString(out, page.String()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// isTerminal reports whether somebody looks at what is written.
func isTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
