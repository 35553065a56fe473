package testweb

import (
	"github.com/freshet/freshet/lab/testweb/behaviour"
	"github.com/freshet/freshet/lab/testweb/content"
)

// Demo returns the configuration of a small web for a first look: about thirty
// hosts and 600 pages in English, Russian and Lithuanian, some of whose links
// only a browser finds, that change every few minutes.
func Demo() Config {
	set, err := behaviour.Preset("demo")
	if err != nil {
		panic("testweb: embedded preset: " + err.Error()) // it is part of the program
	}
	const seed = 2026
	history, err := Change{Interval: 3 * 3600, Seed: seed}.History()
	if err != nil {
		panic("testweb: demo: " + err.Error())
	}
	return Config{
		Pages: 600, Sites: 30, Seed: seed,
		Languages:  []content.Language{content.English, content.English, content.Russian, content.Lithuanian},
		Behaviours: set,
		History:    history, TimeScale: 60,
	}
}
