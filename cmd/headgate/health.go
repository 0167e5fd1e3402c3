package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// adminAddress is where the admin listener is unless the configuration moves it.
const adminAddress = "127.0.0.1:9080"

// healthTimeout is how long the answer of a health page may take.
const healthTimeout = 3 * time.Second

func newHealth() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Check health",
		Long: `health asks the admin listener of a headgate that runs on this machine and exits
with 0 when it is well, 1 when it is not or does not answer. It is the health
check of the container image.`,
		Example: `  headgate health
  headgate health --page readyz --admin 127.0.0.1:9080`,
		Args: noArguments,
	}
	address := cmd.Flags().String("admin", adminAddress, "`IP:PORT` of the admin listener")
	page := newChoice("healthz", "livez", "readyz")
	cmd.Flags().Var(page, "page", "page to ask for")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if _, err := netip.ParseAddrPort(*address); err != nil {
			return usage("invalid address %q, want one like 127.0.0.1:9080", *address)
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), healthTimeout)
		defer cancel()
		status, word, err := askHealth(ctx, *address, page.value)
		if err != nil {
			return unasked(*address, err)
		}
		fmt.Fprintln(cmd.OutOrStdout(), word)
		if status != http.StatusOK {
			return &exitError{code: exitInvalid}
		}
		return nil
	}
	return cmd
}

// unasked says that the admin listener could not be asked, and what helps.
func unasked(address string, err error) error {
	if errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("ask %s: %w; nobody listens there: start headgate, or name its admin listener with --admin", address, err)
	}
	return fmt.Errorf("ask %s: %w", address, err)
}

// askHealth reads a health page of the admin listener.
func askHealth(ctx context.Context, address, page string) (status int, word string, err error) {
	status, body, err := askAdmin(ctx, address, "/"+page, 1<<10)
	return status, strings.TrimSpace(string(body)), err
}

// askAdmin reads a page of the admin listener, and no more of it than limit bytes.
// It asks on a connection of its own: no proxy of the environment stands between.
func askAdmin(ctx context.Context, address, target string, limit int64) (status int, body []byte, err error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return 0, nil, err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		conn.SetDeadline(deadline)
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", target); err != nil {
		return 0, nil, err
	}
	rs, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, nil, err
	}
	defer rs.Body.Close()
	body, err = io.ReadAll(io.LimitReader(rs.Body, limit))
	return rs.StatusCode, body, err
}
