package cli

// webCmd groups the commands of the test web.
type webCmd struct {
	Gen    webGenCmd    `cmd:"" help:"Make a synthetic web and store its graph."`
	Import webImportCmd `cmd:"" help:"Store a graph that others made."`
	Export webExportCmd `cmd:"" help:"Write a stored graph for other programs."`
	Cat    webCatCmd    `cmd:"" help:"Print the links of a stored graph."`
	Stats  webStatsCmd  `cmd:"" help:"Measure a stored graph: degrees, components, PageRank, distances, cores."`
	Laws   webLawsCmd   `cmd:"" help:"Make webs with many seeds and set the exponents that come out beside those asked for."`
	Serve  webServeCmd  `cmd:"" help:"Serve a synthetic web to any robot over DNS, HTTP and HTTPS."`
	Score  webScoreCmd  `cmd:"" help:"Judge a robot from the truth log of a served web."`
}
