package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/freshet/freshet/internal/command"
	"github.com/freshet/freshet/lab/attack"
)

// errAttacked makes the command exit with 1 after the card was printed.
var errAttacked = errors.New("not every attack was withstood")

type attackCmd struct {
	Port      uint16        `help:"Port of all sites, at addresses 127.66.0.1 and up (default: a free one)." placeholder:"N"`
	Runs      int           `help:"How often the command is run, one run after the other." default:"1"`
	Delay     time.Duration `help:"Pause between requests to one host that the robot was told to keep."`
	MaxMemory int           `help:"Memory in MB that the robot's process may take." default:"1500" name:"max-memory"`
	Patience  time.Duration `help:"Time for one run; then it is interrupted, and killed half a minute later." default:"10m"`

	Command []string `arg:"" optional:"" help:"After --: the robot to run. The argument {seeds} stands for all start pages."`
}

// Help explains how a robot is pointed at the web.
func (attackCmd) Help() string {
	return "Serves a hostile web on loopback addresses: a site for each attack, by links, names, redirects, answers, files and scripts. Without a command it prints the start pages, serves until interrupted and then prints the score card; the robot must crawl each start page's host, and no other. With a command it runs that, such as\n\n    freshet lab attack --runs 3 -- freshet crawl --allow-private --data DIR {seeds}\n\nA site withstood its attack if the robot found the ordinary page behind the hostile ones within a bounded number of requests and left third parties in peace; the command exits with 1 if one did not, or if the robot was killed, hung or took too much memory."
}

// Run serves the hostile web, runs the robot and prints the card.
func (c *attackCmd) Run(ctx context.Context, g *command.Globals) (err error) {
	if c.Runs < 1 {
		return command.Usagef("lab attack: --runs %d: want 1 or more", c.Runs)
	}
	web, err := attack.Open(ctx, c.Port)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, web.Close()) }()
	var runs []attack.Run
	if len(c.Command) == 0 {
		for _, u := range web.Seeds() {
			fmt.Fprintln(g.Stderr, u)
		}
		<-ctx.Done()
	}
	for range c.Runs * min(1, len(c.Command)) {
		r, err := c.runRobot(ctx, g, web.Seeds())
		if err != nil {
			return err
		}
		runs = append(runs, r)
	}
	card := web.Judge(c.Delay, len(runs))
	card.Runs = runs
	card.ProcessBad = c.processFault(runs)
	if g.JSON {
		err = g.PrintJSON(card)
	} else {
		card.Print(g.Stdout)
	}
	if err == nil && !card.Passed() {
		err = errAttacked
	}
	return err
}

// processFault says what is wrong with the runs, "" if nothing is.
func (c *attackCmd) processFault(runs []attack.Run) string {
	for i, r := range runs {
		switch {
		case r.Exit != "exit status 0":
			return fmt.Sprintf("run %d ended with %s", i+1, r.Exit)
		case r.PeakMemory > float64(c.MaxMemory):
			return fmt.Sprintf("run %d took %.0f MB of memory; %d are allowed", i+1, r.PeakMemory, c.MaxMemory)
		}
	}
	return ""
}

// runRobot runs the command once.
func (c *attackCmd) runRobot(ctx context.Context, g *command.Globals, seeds []string) (attack.Run, error) {
	var argv []string
	for _, a := range c.Command {
		if a == "{seeds}" {
			argv = append(argv, seeds...)
		} else {
			argv = append(argv, a)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, c.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = g.Stderr, g.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return attack.Run{}, command.Usagef("lab attack: run %s: %w", argv[0], err)
	}
	measured := make(chan float64, 1)
	ended, end := context.WithCancel(context.WithoutCancel(ctx))
	go func() { measured <- peakMemory(ended, cmd.Process.Pid) }()
	_ = cmd.Wait() // how the process ended is in its state
	end()
	out := attack.Run{Exit: exitOf(cmd.ProcessState), Seconds: time.Since(start).Seconds(), PeakMemory: <-measured}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		out.Exit += ", interrupted after " + c.Patience.String()
	}
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok && out.PeakMemory == 0 {
		out.PeakMemory = float64(u.Maxrss) / 1024
	}
	return out, nil
}

// memoryPeriod is how often the memory of a process is read: the last growth before its
// end may be missed.
const memoryPeriod = 100 * time.Millisecond

// peakMemory returns the most memory in MB that a process had resident until ctx ends, or
// 0 where the system does not tell. The maximum of getrusage is of no use: Linux counts in
// it what this process had when it began the other, and hostile files are large.
func peakMemory(ctx context.Context, pid int) (peak float64) {
	name := fmt.Sprintf("/proc/%d/status", pid)
	tick := time.NewTicker(memoryPeriod)
	defer tick.Stop()
	for {
		if b, err := os.ReadFile(name); err == nil {
			if _, value, ok := strings.Cut(string(b), "\nVmHWM:"); ok {
				var kB float64
				if _, err := fmt.Sscan(value, &kB); err == nil {
					peak = max(peak, kB/1024)
				}
			}
		}
		select {
		case <-ctx.Done():
			return peak
		case <-tick.C:
		}
	}
}

// exitOf names how a process ended.
func exitOf(s *os.ProcessState) string {
	if text := s.String(); !strings.HasPrefix(text, "exit status") {
		return text
	}
	return fmt.Sprintf("exit status %d", s.ExitCode())
}
