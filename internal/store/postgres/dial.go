package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// userTimeout is the connection parameter for the time after which the server closes a connection
// whose client does not acknowledge data, in milliseconds. PostgreSQL has it since version 12.
const userTimeout = "tcp_user_timeout"

// dialer returns the function that connects to a server. If the other end of a connection vanishes
// without a reset, the connection ends when data was not acknowledged for the time of a call; an idle
// connection, such as that for notifications, ends after twice this time. Unix sockets need neither.
func dialer(timeout time.Duration) pgconn.DialFunc {
	d := &net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: timeout, Interval: time.Second, Count: max(int(timeout/time.Second), 1)},
		Control:         limitUnacknowledged(timeout),
	}
	return d.DialContext
}

// overTCP reports whether one of the hosts of an address is not a Unix socket.
func overTCP(config *pgconn.Config) bool {
	remote := func(host string) bool { return !strings.HasPrefix(host, "/") && !strings.HasPrefix(host, "@") }
	return remote(config.Host) || slices.ContainsFunc(config.Fallbacks, func(f *pgconn.FallbackConfig) bool { return remote(f.Host) })
}

// open opens a connection. If a connection pool refuses the parameter userTimeout because it does not
// know it, open leaves it out from then on.
func (s *Store) open(ctx context.Context, config *pgconn.Config) (*pgconn.PgConn, error) {
	if s.noUserTimeout.Load() {
		config = withoutUserTimeout(config)
	}
	c, err := pgconn.ConnectConfig(ctx, config)
	refused := (*pgconn.PgError)(nil)
	if _, sent := config.RuntimeParams[userTimeout]; !sent || !errors.As(err, &refused) || !strings.Contains(refused.Message, userTimeout) {
		return c, err
	}
	if !s.noUserTimeout.Swap(true) {
		s.log.Info("the server of the store does not accept the parameter "+userTimeout+": it may keep connections of a machine that vanished open for minutes", "error", refused.Message)
	}
	c, err = pgconn.ConnectConfig(ctx, withoutUserTimeout(config))
	if err != nil {
		return nil, fmt.Errorf("without %s: %w", userTimeout, err)
	}
	return c, nil
}

func withoutUserTimeout(config *pgconn.Config) *pgconn.Config {
	config = config.Copy()
	delete(config.RuntimeParams, userTimeout)
	return config
}
