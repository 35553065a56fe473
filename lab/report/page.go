// Package report writes the lab's results as one HTML file that opens from
// disk: text, tables and plots as inline SVG, no script, no style sheet or
// font from elsewhere. Plots are drawn by gonum/plot.
package report

import (
	"fmt"
	"html/template"
	"io"
)

// Page is a report: a title, an introduction and sections in order.
type Page struct {
	Title    string
	Intro    string
	Sections []Section
}

// Section groups what belongs together: text first, then tables, then figures.
type Section struct {
	Title   string
	Text    string
	Tables  []Table
	Figures []Figure
}

// Table is a table of text cells. Rows may be shorter than the header.
type Table struct {
	Title  string
	Header []string
	Rows   [][]string
}

// drawn is a figure as the template wants it.
type drawn struct {
	Title, Caption string
	SVG            template.HTML
	Small          bool
}

// Write draws every figure and writes the page as one HTML document. The first
// figure that cannot be drawn (a logarithmic axis with a value <= 0 in every
// series, series of unequal lengths) is the error, named by its title.
func (p *Page) Write(w io.Writer) error {
	type section struct {
		Title, Text string
		Tables      []Table
		Figures     []drawn
		Small       bool
	}
	view := struct {
		Title, Intro string
		Sections     []section
	}{Title: p.Title, Intro: p.Intro}
	for _, s := range p.Sections {
		v := section{Title: s.Title, Text: s.Text, Tables: s.Tables}
		for _, f := range s.Figures {
			svg, err := f.SVG()
			if err != nil {
				return fmt.Errorf("report %q: figure %q: %w", p.Title, f.Title, err)
			}
			v.Small = f.Small
			v.Figures = append(v.Figures, drawn{f.Title, f.Caption, template.HTML(svg), f.Small})
		}
		view.Sections = append(view.Sections, v)
	}
	if err := page.Execute(w, view); err != nil {
		return fmt.Errorf("report %q: %w", p.Title, err)
	}
	return nil
}

var page = template.Must(template.New("report").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}}</title>
<style>
:root { color-scheme: light }
body { font: 16px/1.5 system-ui, sans-serif; color: #1c2024; background: #fff; max-width: 74rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.7rem; line-height: 1.2 } h2 { margin-top: 2.5rem; border-bottom: 1px solid #d8dde3; padding-bottom: .2rem }
p { white-space: pre-line; max-width: 50rem }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 31rem), 1fr)); gap: 1.6rem 2rem; margin: 1.2rem 0 }
.figures.small { grid-template-columns: repeat(auto-fill, minmax(min(100%, 17rem), 1fr)); gap: 1.2rem 1.6rem }
figure { margin: 0; overflow-x: auto } figcaption { color: #57606a; font-size: .9rem; overflow-wrap: anywhere } figcaption b { color: #1c2024 }
.plot { display: flex; flex-wrap: wrap; gap: .2rem; align-items: flex-start; margin: 0 0 .4rem } .plot svg { max-width: 100%; height: auto } .plot svg:first-child:not(:last-child) { flex: 1 1 19rem; min-width: 0 }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 1rem 0; font-size: .92rem }
caption { text-align: left; font-weight: 600; padding: .3rem 0 }
th, td { padding: .25rem .7rem; border-bottom: 1px solid #e4e8ec; text-align: right } th { background: #f4f6f8 }
th:first-child, td:first-child { text-align: left }
nav ul { columns: 14rem; padding-left: 1.2rem; max-width: 50rem } a { color: #0a57a0 }
thead th { position: sticky; top: 0 } tbody tr:hover { background: #f8fafb }
@media (max-width: 40rem) { body { margin: 1rem auto; padding: 0 .8rem } h1 { font-size: 1.4rem } h2 { font-size: 1.2rem; margin-top: 1.8rem } th, td { padding: .2rem .5rem } }
@media print { figure, tr { break-inside: avoid } }
</style></head><body>
<h1>{{.Title}}</h1>
{{with .Intro}}<p>{{.}}</p>{{end}}
{{if gt (len .Sections) 3}}<nav><ul>{{range $i, $s := .Sections}}{{if $s.Title}}<li><a href="#s{{$i}}">{{$s.Title}}</a></li>{{end}}{{end}}</ul></nav>{{end}}
{{range $i, $s := .Sections}}<section id="s{{$i}}">
{{with $s.Title}}<h2>{{.}}</h2>{{end}}
{{with $s.Text}}<p>{{.}}</p>{{end}}
{{range $s.Tables}}<div class="wide"><table>{{with .Title}}<caption>{{.}}</caption>{{end}}
{{with .Header}}<thead><tr>{{range .}}<th>{{.}}</th>{{end}}</tr></thead>{{end}}
<tbody>{{range .Rows}}<tr>{{range .}}<td>{{.}}</td>{{end}}</tr>
{{end}}</tbody></table></div>{{end}}
{{with $s.Figures}}<div class="figures{{if $s.Small}} small{{end}}">{{range .}}<figure><div class="plot">{{.SVG}}</div><figcaption><b>{{.Title}}</b>{{with .Caption}}: {{.}}{{end}}</figcaption></figure>
{{end}}</div>{{end}}
</section>{{end}}
</body></html>
`))
