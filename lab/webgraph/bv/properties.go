package bv

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Properties tell how a graph is coded.
type Properties struct {
	Nodes, Links int64
	Window       int // lists before that a list may be copied from
	MaxRef       int // greatest length of a chain of copies
	MinInterval  int // least length of an interval, 0: no intervals
	ZetaK        int

	degrees, blocks, residuals, references, counts code
}

// code is a code of numbers.
type code uint8

const (
	unaryCode code = iota
	gammaCode
	deltaCode
	zetaCode
	nibbleCode
)

// Default returns the properties that LAW's own graphs have, without sizes.
func Default() Properties {
	return Properties{
		Window: 7, MaxRef: 3, MinInterval: 4, ZetaK: 3,
		degrees: gammaCode, blocks: gammaCode, residuals: zetaCode, references: unaryCode, counts: gammaCode,
	}
}

// ReadProperties parses a .properties file. What the format allows and this
// package cannot read (Golomb codes) is an error.
func ReadProperties(r io.Reader) (Properties, error) {
	p := Default()
	p.Nodes, p.Links = -1, -1
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	for line := 1; in.Scan(); line++ {
		text := strings.TrimSpace(in.Text())
		if text == "" || text[0] == '#' || text[0] == '!' {
			continue
		}
		key, value, _ := strings.Cut(text, "=")
		if err := p.setProperty(strings.TrimSpace(key), strings.TrimSpace(value)); err != nil {
			return p, fmt.Errorf("line %d: %w", line, err)
		}
	}
	if err := in.Err(); err != nil {
		return p, err
	}
	switch {
	case p.Nodes < 0 || p.Links < 0:
		return p, fmt.Errorf("it does not tell the numbers of nodes and arcs")
	case p.Nodes > 1<<32-1:
		return p, fmt.Errorf("%d nodes: more than 32 bits number", p.Nodes)
	case p.Window > 1<<16 || p.ZetaK < 1 || p.ZetaK > 32:
		return p, fmt.Errorf("window of %d lists, zeta code %d", p.Window, p.ZetaK)
	}
	return p, nil
}

func (p *Properties) setProperty(key, value string) error {
	number := func(to *int) error {
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil || n < 0 {
			return fmt.Errorf("%s=%.40s: want a number", key, value)
		}
		*to = int(n)
		return nil
	}
	size := func(to *int64) (err error) {
		if *to, err = strconv.ParseInt(value, 10, 64); err != nil || *to < 0 {
			return fmt.Errorf("%s=%.40s: want a number", key, value)
		}
		return nil
	}
	switch key {
	case "nodes":
		return size(&p.Nodes)
	case "arcs":
		return size(&p.Links)
	case "windowsize":
		return number(&p.Window)
	case "maxrefcount":
		if value == "-1" { // without limit
			value = "2147483647"
		}
		return number(&p.MaxRef)
	case "minintervallength":
		return number(&p.MinInterval)
	case "zetak":
		return number(&p.ZetaK)
	case "graphclass":
		if !strings.HasSuffix(value, "BVGraph") {
			return fmt.Errorf("graphclass=%.60s: only BVGraph can be read", value)
		}
	case "version":
		if value != "0" {
			return fmt.Errorf("version=%.20s of the format: only 0 is known", value)
		}
	case "endianness":
		if value != "big" {
			return fmt.Errorf("endianness=%.20s: only big can be read", value)
		}
	case "compressionflags":
		return p.setCompressionFlags(value)
	}
	return nil
}

// setCompressionFlags sets codes that are not the default ones: names like RESIDUALS_GAMMA,
// separated by |.
func (p *Properties) setCompressionFlags(value string) error {
	kinds := map[string]code{"UNARY": unaryCode, "GAMMA": gammaCode, "DELTA": deltaCode, "ZETA": zetaCode, "NIBBLE": nibbleCode}
	parts := map[string]*code{"OUTDEGREES": &p.degrees, "BLOCKS": &p.blocks, "RESIDUALS": &p.residuals, "REFERENCES": &p.references, "BLOCK_COUNT": &p.counts}
	for _, f := range strings.Split(value, "|") {
		f = strings.TrimSpace(f)
		if f == "" {
			continue
		}
		i := strings.LastIndexByte(f, '_')
		if i < 0 {
			return fmt.Errorf("compression flag %.40q is not known", f)
		}
		kind, ok := kinds[f[i+1:]]
		part := parts[f[:i]]
		if f[:i] == "OFFSETS" {
			continue // the offsets are not read
		}
		if !ok || part == nil {
			return fmt.Errorf("compression flag %.40q cannot be read", f)
		}
		*part = kind
	}
	return nil
}

// writeProperties writes a .properties file.
func (p *Properties) writeProperties(w io.Writer, bits uint64) error {
	perLink := 0.0
	if p.Links > 0 {
		perLink = float64(bits) / float64(p.Links)
	}
	_, err := fmt.Fprintf(w, "#BVGraph properties\nversion=0\ngraphclass=it.unimi.dsi.webgraph.BVGraph\nnodes=%d\narcs=%d\nwindowsize=%d\nmaxrefcount=%d\nminintervallength=%d\nzetak=%d\ncompressionflags=\nbitsperlink=%.3f\n",
		p.Nodes, p.Links, p.Window, p.MaxRef, p.MinInterval, p.ZetaK, perLink)
	return err
}
