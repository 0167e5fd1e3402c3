//go:build linux

package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
)

// grpcWord makes this program serve as the upstream of gRPC.
const grpcWord = "serve-grpc"

// grpcPath is where the upstream of gRPC answers.
const grpcPath = "/bench.Echo/"

// grpcMessage is a message of 40 bytes as gRPC frames it.
const grpcMessage = "\x00\x00\x00\x00\x230123456789012345678901234567890123456"

// startGRPC starts the upstream of gRPC: this program itself. Its address is given
// once it listens, as the kernel keeps connections until it accepts.
func startGRPC(b *bench) (*process, string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	addresses, err := freeAddresses(1)
	if err != nil {
		return nil, "", err
	}
	p, err := startProcess(b.options.upstreamCPU, b.dir, []string{"GOMAXPROCS=1"}, self, grpcWord, addresses[0])
	if err != nil {
		return nil, "", err
	}
	if err := ready(b.ctx, p, target{address: addresses[0]}, get("/", "upstream"), hundredBytes); err != nil {
		p.stop()
		return nil, "", fmt.Errorf("upstream of gRPC: %w", err)
	}
	return p, addresses[0], nil
}

// serveGRPC answers every call on args[0] with one message and the status 0, once
// it has read what was sent.
func serveGRPC(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s wants an address", grpcWord)
	}
	l, err := net.Listen("tcp", args[0])
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, hundredBytes) })
	mux.HandleFunc(grpcPath, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		h := w.Header()
		h["Content-Type"], h["Trailer"] = []string{"application/grpc"}, []string{"Grpc-Status"}
		io.WriteString(w, grpcMessage)
		h["Grpc-Status"] = []string{"0"}
	})
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: mux, Protocols: protocols, ErrorLog: log.New(io.Discard, "", 0)}
	return server.Serve(l)
}

// measureGRPC makes calls on a few connections with many streams each.
func measureGRPC(b *bench, all []*running) (sample, error) {
	r := all[0]
	if err := writeFile(r.setup.dir, "message", grpcMessage); err != nil {
		return sample{}, err
	}
	return b.h2Load(r, grpcPath+"Call", "-d"+r.setup.dir+"/message", "-Hcontent-type: application/grpc", "-Hte: trailers")
}
