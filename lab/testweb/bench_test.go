package testweb

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/freshet/freshet/lab/testweb/behaviour"
	"github.com/freshet/freshet/lab/testweb/name"
	"github.com/freshet/freshet/lab/testweb/truth"
)

// cpu returns the processor time that this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// fetcher is a client that costs as little as a client can: one connection,
// prepared requests, answers measured by their Content-Length.
type fetcher struct {
	conn net.Conn
	r    *bufio.Reader
	req  []byte
}

func dial(addr string) (*fetcher, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &fetcher{conn: conn, r: bufio.NewReaderSize(conn, 1<<14)}, nil
}

var lengthField = []byte("Content-Length: ")

// get fetches a page and returns the length of its body.
func (f *fetcher) get(w *Web, page uint64, last bool) (int, error) {
	host := w.layout.Host(page)
	u := w.URL(page)[len("http://"):]
	slash := bytes.IndexByte([]byte(u), '/')
	f.req = append(append(f.req[:0], "GET "...), u[slash:]...)
	f.req = append(w.names.Append(append(f.req, " HTTP/1.1\r\nHost: "...), host), "\r\n"...)
	if last {
		f.req = append(f.req, "Connection: close\r\n"...)
	}
	if _, err := f.conn.Write(append(f.req, "\r\n"...)); err != nil {
		return 0, err
	}
	length := 0
	for {
		line, err := f.r.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		if len(line) == 2 {
			break
		}
		if bytes.HasPrefix(line, lengthField) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(line[len(lengthField):]))); err != nil {
				return 0, err
			}
		}
	}
	return f.r.Discard(length)
}

// serveBench runs clients on the cores of the server and reports pages per
// second and processor time a page, of server and client together.
func serveBench(b *testing.B, cfg Config, perConn int) {
	cfg.HTTP = "127.0.0.1:0"
	log, err := truth.NewLog(io.Discard, truth.Head{})
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	cfg.Truth = log
	s, err := New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	var bytesRead atomic.Int64
	b.SetParallelism(32 / runtime.GOMAXPROCS(0))
	used := cpu()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		r := rand.New(rand.NewPCG(1, rand.Uint64()))
		var f *fetcher
		sum := 0
		for n := 0; pb.Next(); n++ {
			if f == nil || n%perConn == 0 && perConn < never {
				var err error
				if f, err = dial(s.HTTPAddr()); err != nil {
					b.Error(err)
					return
				}
			}
			last := (n+1)%perConn == 0 && perConn < never
			got, err := f.get(s.Web, r.Uint64N(s.Pages()), last)
			if err != nil {
				b.Error(fmt.Errorf("request %d: %w", n, err))
				return
			}
			sum += got
			if last {
				_ = f.conn.Close()
			}
		}
		bytesRead.Add(int64(sum))
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pages/s")
	b.ReportMetric(float64((cpu()-used).Microseconds())/float64(b.N), "cpu-us/page")
	b.SetBytes(bytesRead.Load() / int64(b.N))
}

const never = 1 << 40 // requests before a new connection

func BenchmarkKeepAlive(b *testing.B) { serveBench(b, Config{Pages: 1 << 42, Seed: 1}, never) }

func BenchmarkConnections(b *testing.B) { serveBench(b, Config{Pages: 1 << 42, Seed: 1}, 1) }

func BenchmarkMillionSites(b *testing.B) {
	serveBench(b, Config{Pages: 4e6, Sites: 1e6, Seed: 1}, never)
}

// The wild preset without what only costs waiting.
func BenchmarkWild(b *testing.B) {
	set, err := behaviour.Parse("", []byte("preset: wild\nlatency: off\nreset: off\noutage: off\nbomb: off"))
	if err != nil {
		b.Fatal(err)
	}
	serveBench(b, Config{Pages: 1e6, Seed: 1, Behaviours: set, History: changing(b, 1, 3600), TimeScale: 1000}, never)
}

// BenchmarkReply makes answers without the network.
func BenchmarkReply(b *testing.B) {
	w, err := NewWeb(Config{Pages: 1 << 42, Seed: 1})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for i := uint64(0); b.Loop(); i++ {
		page := i * 0x9e3779b97f4a7c15 >> 22
		host := w.layout.Host(page)
		first, _ := w.layout.Span(host)
		v := w.answerVisit(host, "www.example.cz", origin{scheme: "http"}, documentPath(page-first), "", 1)
		b.SetBytes(int64(len(w.replyBody(v))))
		w.releaseVisit(v)
	}
}

func documentPath(doc uint64) string { return name.Document(doc) }

func BenchmarkChanging(b *testing.B) {
	w, err := NewWeb(Config{Pages: 1 << 42, History: changing(b, 1, 3600)})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for i := range uint64(b.N) {
		w.Version(i*7919, 1e6)
	}
}
