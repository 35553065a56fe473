package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/freshet/freshet/internal/command"

	bench "github.com/freshet/freshet/lab/bench/crawl"
)

// benchCmd measures freshet and, where they are installed, its peers.
type benchCmd struct {
	Crawl    benchCrawlCmd    `cmd:"" help:"Crawl a closed site on loopback with freshet, a bare loop, and colly, Scrapy and katana where installed."`
	Throttle benchThrottleCmd `cmd:"" help:"What control of the agents by the indexing queue is worth: live, by the model, and by simulation."`
	Fresh    benchFreshCmd    `cmd:"" help:"How fresh the robot keeps a site that changes, under each policy with an equal budget."`
	Sensor   benchSensorCmd   `cmd:"" help:"From the change of a file through a sensor, a serve that is killed, robot and index to the search that finds it; and what the middleware costs."`
	Share    benchShareCmd    `cmd:"" help:"Scan shares, search files, and schedule scans, beside a plain walk, rclone and plocate where installed."`
	Agents   benchAgentsCmd   `cmd:"" help:"Crawl a web of scripts and static sites with more and more fetch and render agents; judge what is rendered; compare with a loop of one tab a page."`
	Seen     benchSeenCmd     `cmd:"" help:"Fill the set of known URLs of one machine: time, memory, disk, exactness."`
	Nodes    benchNodesCmd    `cmd:"" help:"Crawl a web with more and more agents and processes that share a PostgreSQL database: rate, CPU of each part, commits."`
	Site     benchSiteCmd     `cmd:"" hidden:"" help:"Serve the closed site."`
	Bare     benchBareCmd     `cmd:"" hidden:"" help:"Crawl it with a bare loop."`
}

type benchCrawlCmd struct {
	Pages  int      `help:"Pages of the site." default:"20000"`
	Hosts  int      `help:"Hosts of the site (127.0.0.1, 127.0.0.2 ...), at most 200." default:"16"`
	Links  int      `help:"Links of a page." default:"32"`
	Size   int      `help:"Bytes of a page." default:"12000"`
	Robots []string `help:"Which robots run, in this order." default:"freshet,bare,colly,colly-seen,scrapy,katana"`
	Peers  string   `help:"Folder of the peers' sources (lab/bench/peers of a checkout)." default:"lab/bench/peers" type:"path"`
	HTTPS  bool     `name:"https" help:"Serve the site over HTTPS (HTTP/2 and HTTP/1.1); robots learn its certificate from SSL_CERT_FILE."`
	Index  bool     `help:"freshet also indexes the pages."`
	Keep   string   `help:"Keep freshet's data directory here." placeholder:"DIR" type:"path"`

	CPUProfile string `name:"cpu-profile" help:"freshet writes where its CPU time goes, for go tool pprof." placeholder:"FILE" type:"path"`
	MemProfile string `name:"mem-profile" help:"freshet writes what it allocates." placeholder:"FILE" type:"path"`
}

// Run runs the robots one after the other against one server.
func (c *benchCrawlCmd) Run(ctx context.Context, g *command.Globals) error {
	if c.Pages < c.Hosts || c.Hosts < 1 || c.Hosts > 200 {
		return command.Usagef("bench crawl: --hosts is 1 to 200 and not more than --pages")
	}
	work, err := os.MkdirTemp("", "freshet-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	site, stop, err := c.serveBenchSite(ctx, self, work)
	if err != nil {
		return err
	}
	defer stop()
	var results []bench.Result
	var absent []benchAbsent
	for _, name := range c.Robots {
		argv, err := c.robotCommand(ctx, name, self, work, site)
		if err != nil {
			absent = append(absent, benchAbsent{name, err.Error()})
			continue
		}
		if !g.Quiet {
			fmt.Fprintf(g.Stderr, "%s ...\n", name)
		}
		results = append(results, bench.Run(ctx, name, site.Address, argv, io.Discard))
	}
	if g.JSON {
		return g.PrintJSON(map[string]any{"pages": c.Pages, "hosts": c.Hosts, "links": c.Links, "page_bytes": c.Size, "https": c.HTTPS, "results": results, "absent": absent})
	}
	if err := c.printResults(g.Stdout, results); err != nil {
		return err
	}
	for _, a := range absent {
		fmt.Fprintf(g.Stdout, "%s did not run: %s\n", a.Robot, a.Why)
	}
	return nil
}

// benchAbsent is a robot that could not run.
type benchAbsent struct {
	Robot string `json:"robot"`
	Why   string `json:"why"`
}

// benchSite is what the serving process tells.
type benchSite struct {
	Address string   `json:"address"`
	Seeds   []string `json:"seeds"`
}

// serveBenchSite starts the site as a process, so that its CPU time is not the robots'.
func (c *benchCrawlCmd) serveBenchSite(ctx context.Context, self, work string) (benchSite, func(), error) {
	var site benchSite
	argv := []string{"lab", "bench", "site", "--pages", strconv.Itoa(c.Pages), "--hosts", strconv.Itoa(c.Hosts), "--links", strconv.Itoa(c.Links), "--size", strconv.Itoa(c.Size)}
	if c.HTTPS {
		cert := filepath.Join(work, "site.pem")
		argv = append(argv, "--cert", cert)
		// Go programs read their trusted certificates when they first need them: this
		// process, for the site's counts, and the robots, which inherit the variable.
		if err := os.Setenv("SSL_CERT_FILE", cert); err != nil {
			return site, nil, err
		}
	}
	cmd := exec.CommandContext(ctx, self, argv...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return site, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return site, nil, err
	}
	if err := cmd.Start(); err != nil {
		return site, nil, fmt.Errorf("bench: serve the site: %w", err)
	}
	stop := func() { _ = in.Close(); _ = cmd.Wait() }
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &site)
	}
	if err != nil {
		stop()
		return site, nil, fmt.Errorf("bench: serve the site: %w", err)
	}
	return site, stop, nil
}

// robotCommand is the command line of a robot, or why it cannot run.
func (c *benchCrawlCmd) robotCommand(ctx context.Context, name, self, work string, site benchSite) ([]string, error) {
	n := strconv.Itoa(c.Hosts) // as many connections as hosts
	switch name {
	case "freshet":
		data := c.Keep
		if data == "" {
			var err error
			if data, err = os.MkdirTemp(work, "data-"); err != nil {
				return nil, err
			}
		}
		argv := []string{self, "--data", data, "--quiet", "crawl", "--allow-private", "--agents", n, "--scope", "any"}
		if !c.Index {
			argv = append(argv, "--no-index")
		}
		if c.CPUProfile != "" {
			argv = append(argv, "--cpu-profile", c.CPUProfile)
		}
		if c.MemProfile != "" {
			argv = append(argv, "--mem-profile", c.MemProfile)
		}
		return append(argv, site.Seeds...), nil
	case "bare":
		return append([]string{self, "lab", "bench", "bare", "-n", n}, site.Seeds...), nil
	case "colly", "colly-seen":
		bin := filepath.Join(work, "colly")
		if err := c.checkPeerSources("colly/main.go"); err != nil {
			return nil, err
		}
		if bench.Look("go") == "" {
			return nil, errors.New("the go command, which builds it, is not installed")
		}
		if _, err := os.Stat(bin); err != nil {
			build := exec.CommandContext(ctx, "go", "build", "-o", bin, ".")
			build.Dir = filepath.Join(c.Peers, "colly")
			if out, err := build.CombinedOutput(); err != nil {
				return nil, fmt.Errorf("build %s: %w: %s", build.Dir, err, strings.TrimSpace(string(out)))
			}
		}
		return append([]string{bin, "-n", n, "-seen=" + strconv.FormatBool(name == "colly-seen")}, site.Seeds...), nil
	case "scrapy":
		if bench.Look("scrapy") == "" {
			return nil, errors.New("scrapy is not on the PATH (Debian: apt install python3-scrapy)")
		}
		if err := c.checkPeerSources("scrapy/site.py"); err != nil {
			return nil, err
		}
		return append([]string{"/usr/bin/python3", filepath.Join(c.Peers, "scrapy", "site.py"), n}, site.Seeds...), nil
	case "katana":
		bin := bench.Look("katana", filepath.Join(c.Peers, "katana"))
		if bin == "" {
			return nil, fmt.Errorf("katana is neither on the PATH nor in %s (go install github.com/projectdiscovery/katana/cmd/katana@v1.2.2)", filepath.Join(c.Peers, "katana"))
		}
		// Its own scope ends at the host of the seed; links that leave it count as
		// known from then on, so that further seeds do not find them. One seed without
		// a scope reaches the closed site. It ends ten seconds after the last page.
		return []string{bin, "-u", site.Seeds[0], "-ns", "-s", "breadth-first", "-d", "100000", "-c", n, "-p", "1", "-rl", "1000000", "-silent", "-duc", "-o", filepath.Join(work, "katana.txt")}, nil
	}
	return nil, fmt.Errorf("unknown robot; there are freshet, bare, colly, colly-seen, scrapy, katana")
}

// checkPeerSources checks that a file of a peer's sources is there: they are part of a
// checkout, not of the program.
func (c *benchCrawlCmd) checkPeerSources(file string) error {
	if _, err := os.Stat(filepath.Join(c.Peers, file)); err != nil {
		return fmt.Errorf("no %s in %s: run this in a checkout of Freshet's sources, or name its lab/bench/peers with --peers", file, c.Peers)
	}
	return nil
}

func (c *benchCrawlCmd) printResults(w io.Writer, results []bench.Result) error {
	scheme := "HTTP"
	if c.HTTPS {
		scheme = "HTTPS"
	}
	fmt.Fprintf(w, "%d pages of %d bytes, %d links each, on %d hosts, over %s\n", c.Pages, c.Size, c.Links, c.Hosts, scheme)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "robot\tpages\ttwice\tseconds\tpages/s\tCPU us/page\tx freshet\tpeak MB\t")
	var own float64
	for _, r := range results {
		if r.Robot == "freshet" {
			own = r.CPU
		}
	}
	for _, r := range results {
		if r.Error != "" {
			fmt.Fprintf(t, "%s\tfailed: %s\t\n", r.Robot, r.Error)
			continue
		}
		ratio := "-"
		if own > 0 {
			ratio = fmt.Sprintf("%.2f", r.CPU/own)
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%.1f\t%.0f\t%.0f\t%s\t%d\t\n", r.Robot, r.Pages, r.Duplicates, r.Seconds, r.PagesSecond, r.CPU, ratio, r.Memory>>20)
	}
	return t.Flush()
}

// benchSiteCmd serves until its standard input ends.
type benchSiteCmd struct {
	Pages int `default:"20000"`
	Hosts int `default:"16"`
	Links int `default:"32"`
	Size  int `default:"12000"`
	Cert  string
}

// Run serves.
func (c *benchSiteCmd) Run(_ context.Context, g *command.Globals) error {
	t, err := bench.Open(bench.NewSite(c.Pages, c.Hosts, c.Links, c.Size), c.Cert)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := json.NewEncoder(g.Stdout).Encode(benchSite{t.Address(), t.Site.Seeds()}); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, g.Stdin)
	return err
}

type benchBareCmd struct {
	N     int      `short:"n" default:"16"`
	Seeds []string `arg:""`
}

// Run crawls and prints the number of pages.
func (c *benchBareCmd) Run(ctx context.Context, g *command.Globals) error {
	n, err := bench.Bare(ctx, c.Seeds, c.N)
	fmt.Fprintln(g.Stdout, n)
	return err
}
