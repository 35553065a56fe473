package content

import (
	"strings"

	"github.com/freshet/freshet/internal/rng"
)

// vocabularySize is the number of words of each language: the commonest are
// real, most of the rest are real stems with real endings, so that stemmers and
// language detectors find what they expect.
const vocabularySize = 1 << 13

// The commonest words of running text, in order of frequency.
const (
	englishCommon = `the of and to in a is that for it as was with be by on not he his but at are this have from or had an they which one you were her all she there would their we him been has when who will more no if out so said what up its about into than them can only other new some could time these two may then do first any my now such like our over man me even most made after also did many before must through back years where much your way well down should because each just those people mr how too little state good very make world still own see men work long get here between both life being under never day same another know while last might us great old year off come since against go came right used take three`
	russianCommon = `и в не на я что он с как это по но они к у ты из мы за вы так же от все его только для бы когда уже если до или ни быть был него даже нас ли она вот было мне еще нет о ему теперь кто есть себя потом вас там чем была сам чтоб без будто чего раз тоже себе под будет тогда этот того потому этого какой совсем ним здесь этом один почти мой тем чтобы нее были куда зачем всех никогда можно при наконец два об другой хоть после над больше тот через эти про всего них какая много разве три эту моя впрочем хорошо свою этой перед иногда лучше чуть том нельзя такой им более всегда конечно всю между год время человек дело жизнь день рука работа слово место вопрос лицо друг сторона страна мир случай голова ребенок сила конец вид система часть город отношение женщина деньги`
	lithuanian    = `ir yra kad į iš su ne tai kaip o bet jis buvo per už būti apie savo jau tik dar nuo prie taip ką mes jo kai jų ar arba ji labai jie aš gali po mano prieš kur metų tačiau jos kas bus kurie šis tokia kiek iki todėl nes man mums galima vienas reikia daugiau visi pagal net ten čia kuris būtų kurių tuo visų nėra ši tarp gerai metu jei lietuvos žmonių dėl šiuo pat laiko jam darbo tą tas du tokio mūsų kitų vieną ypač daug dabar kada niekada visada dažnai kartais kodėl tada paskui žmogus diena gyvenimas metai laikas darbas pasaulis vieta miestas valstybė teisė dalis žodis šalis būdas kalba namas vaikas moteris vyras ranka akis kelias vanduo širdis galva`
)

// Stems and endings that make the rest.
const (
	englishStems    = `water river market garden travel school music letter winter summer forest mountain engine record history science language doctor village island castle station bridge captain colour number river picture printer server network signal archive index search robot spring stream current flood valley harbour season weather measure balance library museum theatre market kitchen teacher student paper window street railway company president minister council election budget industry farmer butter silver copper iron crystal diamond planet comet orbit gravity motion pressure theory formula problem method model sample surface structure function vector matrix graph cluster kernel memory process thread schedule queue visit change page site link domain user answer question region border culture painter writer poet novel drama opera violin piano chorus concert festival season record winner player match stadium runner boat sailor voyage ocean coast beach storm thunder cloud horizon morning evening midnight clock pocket leather cotton wool fabric tailor button needle thread mirror candle lantern chimney cellar attic garage engine wheel wagon horse saddle bridle meadow orchard apple cherry pepper ginger bread honey`
	englishEndings  = `,s,ed,ing,er,ers,ness,ful,less,ly,ment,able,ist,ism,ship,al,ity,ward,land,like`
	russianStems    = `город дорог письм магазин книг школ учител врач музык театр музе картин художник писател рассказ повест роман стих поэт песн голос звук струн концерт праздник победител игрок матч стадион лодк корабл моряк океан берег пляж бур гром облак горизонт утр вечер полноч час карман кож хлопк шерст ткан пугов игл зеркал свеч фонар труб подвал чердак колес повозк лошад седл луг яблок вишн перц хлеб мед сад лес гор рек озер остров замок станц мост капитан цвет числ печат сервер сигнал архив поиск робот весн поток разлив долин гаван сезон погод мер баланс библиотек кухн студент бумаг окн улиц поезд компани президент министр совет выбор бюджет промышлен завод фермер масл серебр мед желез кристалл алмаз планет комет орбит движен давлен теори формул проблем метод модел образец поверхност структур функц вектор матриц граф ядр памят процесс расписан очеред изменен страниц сайт ссылк домен пользовател ответ област границ культур`
	russianEndings  = `а,у,ы,ов,ам,ами,ах,е,ой,ом,ный,ная,ное,ные,ного,ной,ский,ская,ских,ник,ники,ость,ости,ить,ил,ила,или,ает,ают,ение`
	lithuanianStems = `miest keli laišk parduotuv knyg mokykl mokytoj gydytoj muzik teatr muziej paveiksl dailinink rašytoj pasakojim roman eilėrašt poet dain bals gars styg koncert švent nugalėtoj žaidėj rungtyn stadion valt laiv jūreivi vandenyn krant paplūdim audr griaust debes horizont ryt vakar vidurnakt laikrod kišen od medviln viln audin sag adat veidrod žvak žibint kamin rūs palėp rat vežim arkl baln piev obuol vyšni pipir duon med sod mišk kaln up ežer sal pil stot tilt kapiton spalv skaiči spausd server signal archyv pieš paiešk robot pavasar sraut potvyn slėn uost sezon or mat bibliotek virtuv student popier lang gatv traukin bendrov prezident ministr taryb rinkim biudžet pramon gamykl ūkinink sviest sidabr vari gelež kristal deimant planet komet orbit judėjim slėgi teorij formul problem metod model pavyzd pavirši struktūr funkcij vektor matric graf branduol atmint proces tvarkarašt eil pakeitim puslap svetain nuorod domen vartotoj atsakym srit sien kultūr`
	lithuanEndings  = `as,o,ui,ą,u,e,ai,ų,ams,us,ais,uose,a,os,ai,oje,is,io,iui,į,iu,yje,iai,ių,ė,ės,ei,ę,inis,inė,iškas,iška,umas,umo,ininkas`
)

// Language is one of the languages of the pages.
type Language int

// The languages of the pages.
const (
	English Language = iota
	Russian
	Lithuanian
	languages
)

// Tag returns the language tag (BCP 47).
func (l Language) Tag() string { return [...]string{"en", "ru", "lt"}[l] }

// ParseLanguage returns the language of a tag; ok is false for others.
func ParseLanguage(tag string) (l Language, ok bool) {
	for l := range languages {
		if l.Tag() == tag {
			return l, true
		}
	}
	return 0, false
}

// Words holds the vocabularies of all languages with what is needed to draw
// from them by Zipf's law. It is immutable; build it once with NewWords.
type Words struct {
	words [languages][]string
	title [languages][]string // the same words with a capital
	alias []aliasCell         // Zipf over ranks, the same for every language
}

// NewWords builds the vocabularies, the same in every process.
func NewWords() *Words {
	w := &Words{alias: zipfAliasTable(vocabularySize, zipfExponent)}
	for l, src := range [languages][3]string{
		English:    {englishCommon, englishStems, englishEndings},
		Russian:    {russianCommon, russianStems, russianEndings},
		Lithuanian: {lithuanian, lithuanianStems, lithuanEndings},
	} {
		w.words[l] = buildVocabulary(src[0], src[1], src[2])
		w.title[l] = make([]string, len(w.words[l]))
		for i, s := range w.words[l] {
			w.title[l][i] = capitalize(s)
		}
	}
	return w
}

// Word returns the word of a language with a rank, 0 the commonest.
func (w *Words) Word(l Language, rank int) string { return w.words[l][rank] }

// buildVocabulary lists vocabularySize different words: the common ones in their
// order, then stems with endings, then compounds of two stems with an ending.
func buildVocabulary(common, stems, endings string) []string {
	words := make([]string, 0, vocabularySize)
	seen := make(map[string]bool, vocabularySize)
	add := func(s string) {
		if !seen[s] && len(words) < vocabularySize {
			seen[s] = true
			words = append(words, s)
		}
	}
	for s := range strings.FieldsSeq(common) {
		add(s)
	}
	stem, ending := strings.Fields(stems), strings.Split(endings, ",")
	for _, e := range ending {
		for _, s := range stem {
			add(s + e)
		}
	}
	for i := uint64(0); len(words) < vocabularySize; i++ {
		h := rng.Mix(uint64(len(stems)), i)
		add(stem[h%uint64(len(stem))] + stem[h>>20%uint64(len(stem))] + ending[h>>40%uint64(len(ending))])
	}
	return words
}

// capitalize returns s with its first letter in upper case.
func capitalize(s string) string {
	for i := range s {
		if i > 0 {
			return strings.ToUpper(s[:i]) + s[i:]
		}
	}
	return strings.ToUpper(s)
}
