package main

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// notifier reports the state to systemd. Without systemd it does nothing.
type notifier struct{ log *slog.Logger }

func (n notifier) send(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		n.log.Warn("cannot notify systemd", "error", err)
	}
}

func (n notifier) ready() { n.send(daemon.SdNotifyReady + "\nSTATUS=Serving.") }

// replacedBy makes another process the main one of the service, and waits until systemd has
// processed that. From then on systemd accepts its messages (NotifyAccess=main).
func (n notifier) replacedBy(pid int) {
	n.send("MAINPID=" + strconv.Itoa(pid))
	if err := barrier(); err != nil {
		n.log.Warn("systemd has not confirmed the new main process", "error", err)
	}
}

func (n notifier) stopping() { n.send(daemon.SdNotifyStopping + "\nSTATUS=Draining.") }

// reloading is followed by reloaded, whether or not the change was applied.
// systemd wants to know when it began (Type=notify-reload).
func (n notifier) reloading() {
	n.send(daemon.SdNotifyReloading + "\n" + daemon.SdNotifyMonotonicUsec())
}

func (n notifier) reloaded(err error) {
	status := "Serving."
	if err != nil {
		status = "Serving; the last change was rejected."
	}
	n.send(daemon.SdNotifyReady + "\nSTATUS=" + status)
}

// watch notifies systemd's watchdog twice in each of its periods, until ctx ends. Without a
// watchdog it returns immediately.
func (n notifier) watch(ctx context.Context) {
	period, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		n.log.Warn("cannot notify the systemd watchdog", "error", err)
	}
	if period <= 0 {
		return
	}
	ticker := time.NewTicker(period / 2)
	defer ticker.Stop()
	for {
		n.send(daemon.SdNotifyWatchdog)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}
