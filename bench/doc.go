// Bench measures headgate side by side with its peers: nginx, HAProxy and a
// tuned net/http/httputil.ReverseProxy. Each proxy runs on one core of its own,
// with the same upstream, the same load and the same forwarded fields; rounds go
// in turn (A B C, A B C, …), and what is compared are medians. Numbers of one run
// may be compared with each other, never with those of another machine or day.
//
// It writes its table into docs/performance.md; nobody types numbers there. It
// needs Linux, wrk, h2load, and the peers; `make bench` sees to them. It does not
// decide whether a number is good enough: the table shows the goals, and no test
// depends on it.
package main
