package sensors

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Cost is the CPU time that a server takes for a request, by itself and with the
// sensor in front of its handler.
type Cost struct {
	Server   string  `json:"server"`
	Plain    float64 `json:"plain_us"`
	Sensor   float64 `json:"sensor_us"`
	Overhead float64 `json:"overhead"` // share of Plain
}

// Overhead measures a kind of server: pairs of processes, one without and one
// with the sensor, turn about, each asked so many times; medians of CPU time.
func Overhead(ctx context.Context, self, work, kind string, requests, pairs int) (Cost, error) {
	root := filepath.Join(work, "files")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return Cost{}, err
	}
	page := filepath.Join(root, "a.html")
	if err := os.WriteFile(page, []byte(strings.Repeat("<p>a file of the bench\n", 540)), 0o600); err != nil {
		return Cost{}, err
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(page, old, old); err != nil {
		return Cost{}, err
	}
	var plain, with []float64
	for range pairs {
		for _, mute := range []bool{false, true} {
			t, err := measureServer(ctx, self, kind, root, requests, mute)
			if err != nil {
				return Cost{}, err
			}
			if mute {
				with = append(with, t)
			} else {
				plain = append(plain, t)
			}
		}
	}
	slices.Sort(plain)
	slices.Sort(with)
	c := Cost{Server: kind, Plain: plain[len(plain)/2], Sensor: with[len(with)/2]}
	c.Overhead = c.Sensor/c.Plain - 1
	return c, nil
}

// measureServer runs a server for so many requests and returns its CPU microseconds for
// each.
func measureServer(ctx context.Context, self, kind, root string, requests int, mute bool) (float64, error) {
	args := []string{"lab", "bench", "sensor", "--server", kind, "--listen", "127.0.0.1:0", "--root", root, "--hold"}
	if mute {
		args = append(args, "--mute")
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.WaitDelay = wait
	hold, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	address, err := bufio.NewReader(out).ReadString('\n')
	if err == nil {
		err = loadServer(strings.TrimSpace(address), requests)
	}
	_ = hold.Close()
	if werr := cmd.Wait(); err == nil {
		err = werr
	}
	if err != nil {
		return 0, fmt.Errorf("server %s: %w", kind, err)
	}
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return float64(cpu.Microseconds()) / float64(requests), nil
}

// loadServer asks for one page again and again over a few connections, with as little
// work of its own as it can.
func loadServer(address string, requests int) error {
	const connections = 4
	errs := make(chan error, connections)
	var all sync.WaitGroup
	for range connections {
		all.Go(func() {
			if err := requestRepeatedly(address, requests/connections); err != nil {
				errs <- err
			}
		})
	}
	all.Wait()
	close(errs)
	return <-errs
}

func requestRepeatedly(address string, requests int) error {
	c, err := net.Dial("tcp4", address)
	if err != nil {
		return err
	}
	defer c.Close()
	r := bufio.NewReaderSize(c, 64<<10)
	request := []byte("GET /a.html HTTP/1.1\r\nHost: " + address + "\r\n\r\n")
	for range requests {
		if _, err := c.Write(request); err != nil {
			return err
		}
		if err := readAnswer(r); err != nil {
			return err
		}
	}
	return nil
}

// readAnswer reads one answer: of a length that is told, or in chunks.
func readAnswer(r *bufio.Reader) error {
	length := int64(-1)
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) <= 2 {
			break
		}
		if v, ok := strings.CutPrefix(string(line), "Content-Length: "); ok {
			if length, err = strconv.ParseInt(strings.TrimSpace(v), 10, 64); err != nil {
				return err
			}
		}
	}
	if length >= 0 {
		_, err := io.CopyN(io.Discard, r, length)
		return err
	}
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(line)), 16, 64)
		if err != nil {
			return err
		}
		if _, err := io.CopyN(io.Discard, r, n+2); err != nil || n == 0 {
			return err
		}
	}
}
