# The embedded bundle, from the corpora to the package: `make bundle DATA=DIRECTORY`.
#
# DIRECTORY holds parallel.en-ru.tsv.xz (tag, English, Russian), ru-plays.txt.xz, ru-jokes.txt.xz,
# ru-prose.txt.xz and ru-subtitle-blocks.txt.xz. Every stage is done once; a stopped training goes on where it
# was. Seeds are the defaults (1). DEV.en and DEV.ru are a development set, to tune on and to learn lengths
# from. On two cores it takes about a night; BUILD is where it all happens.
DATA  ?=
BUILD ?= build/embedded
EMBEDDED ?= cadec_cli/embedded
DEV   ?= $(DATA)/../dev/wesnoth-dev
CADEC  = $(BIN)/cadec

TIDY = mkdir -p $(BUILD)/text && $(BIN)/python recipes/en-ru/tidy.py
MONOLINGUAL = plays jokes prose subtitle-blocks
TEXTS = $(MONOLINGUAL:%=$(BUILD)/text/%.ru.txt)
# What was held out may be left over from a try that was stopped.
PREPARE = $(CADEC) prepare text --force
RU = -p $(BUILD)/pipelines/ru
NMT_FIRST_UPDATES ?= 3200
NMT_UPDATES       ?= 1500
LM_FIRST_UPDATES  ?= 1200
LM_SECOND_UPDATES ?= 1300
LM_UPDATES        ?= 1500

.PHONY: bundle corpora
corpora: $(READY)
	@test -d "$(DATA)" || { echo "say where the corpora are: make bundle DATA=DIRECTORY"; exit 2; }
	@test -f "$(DEV).en" || { echo "no $(DEV).en: say what to tune on with DEV=PREFIX"; exit 2; }

bundle: $(READY) $(BUILD)/tuned
	rm -rf $(EMBEDDED)
	cp -r $(BUILD)/bundle $(EMBEDDED)

# Every stage is kept: none is a mere step to the next.
.SECONDARY:

$(BUILD)/text/%.ru.txt: | corpora
	$(TIDY) $(DATA)/ru-$*.txt.xz $@

$(BUILD)/text/pairs.tsv: | corpora
	$(TIDY) $(DATA)/parallel.en-ru.tsv.xz $@ 2,3

$(BUILD)/text/pairs.en.txt: | corpora
	$(TIDY) $(DATA)/parallel.en-ru.tsv.xz $@ 2

$(BUILD)/text/pairs.ru.txt: | corpora
	$(TIDY) $(DATA)/parallel.en-ru.tsv.xz $@ 3

$(BUILD)/pipelines/en: | $(BUILD)/text/pairs.en.txt
	$(CADEC) train tokenizer $| -l en --vocab-size 8000 --placeholders -o $@

$(BUILD)/pipelines/ru: | $(BUILD)/text/pairs.ru.txt $(TEXTS)
	$(CADEC) train tokenizer $| --max-lines 60000 -l ru --vocab-size 8000 --placeholders -o $@

$(BUILD)/data/pairs: | $(BUILD)/text/pairs.tsv $(BUILD)/pipelines/en $(BUILD)/pipelines/ru
	$(PREPARE) $(BUILD)/text/pairs.tsv --columns 1,2 -p $(BUILD)/pipelines/en $(RU) --no-documents -o $@ \
	  --dev-output $@-dev --dev-every $(pairs) --max-words 60 --max-ratio 3 --drop-duplicates --check-script --placeholders

# Pairs side by side, for longer sentences than there are.
$(BUILD)/text/joined.tsv: | $(BUILD)/text/pairs.tsv
	$(BIN)/python recipes/en-ru/joined.py $@ $(BUILD)/text/pairs.tsv=$(pairs)

$(BUILD)/data/joined: | $(BUILD)/text/joined.tsv $(BUILD)/pipelines/en $(BUILD)/pipelines/ru
	$(PREPARE) $(BUILD)/text/joined.tsv --columns 1,2 -p $(BUILD)/pipelines/en $(RU) --lines --no-documents -o $@ \
	  --max-words 160 --max-ratio 3 --check-script

$(BUILD)/data/sentences: | $(BUILD)/pipelines/ru
	$(PREPARE) $(BUILD)/text/pairs.ru.txt $(RU) -o $@ --lines --no-documents --max-words 60 --check-script --drop-duplicates

# Every so many documents, one is held out.
plays = 60
jokes = 400
prose = 120
subtitle-blocks = 200
pairs = 160
$(BUILD)/data/subtitle-blocks: SPLIT = --lines
$(MONOLINGUAL:%=$(BUILD)/data/%): $(BUILD)/data/%: | $(BUILD)/pipelines/ru
	$(PREPARE) $(BUILD)/text/$*.ru.txt $(RU) -o $@ --dev-output $@-dev --dev-every $($*) $(SPLIT)

# Passages in which an address or a name carries over: of old documents, of new ones, and of sentences.
KINDS = address names
OLD   = plays prose
NEW   = jokes subtitle-blocks
PASSAGES = $(foreach kind,$(KINDS),$(kind)-old $(kind)-new $(kind)-pairs)
CUT = $(BIN)/python recipes/en-ru/passages.py
TRAINED = $(foreach text,$(1),$(BUILD)/text/$(text).ru.txt=$($(text)))

$(KINDS:%=$(BUILD)/text/%-old.ru.txt): $(BUILD)/text/%-old.ru.txt: | $(OLD:%=$(BUILD)/text/%.ru.txt)
	$(CUT) $* $@ $(call TRAINED,$(OLD))

$(KINDS:%=$(BUILD)/text/%-new.ru.txt): $(BUILD)/text/%-new.ru.txt: | $(NEW:%=$(BUILD)/text/%.ru.txt)
	$(CUT) $* $@ $(call TRAINED,$(NEW))

$(KINDS:%=$(BUILD)/text/%-pairs.ru.txt): $(BUILD)/text/%-pairs.ru.txt: | $(BUILD)/text/pairs.ru.txt
	$(CUT) $* $@ $(call TRAINED,pairs) --sentences

$(PASSAGES:%=$(BUILD)/data/%): $(BUILD)/data/%: | $(BUILD)/text/%.ru.txt $(BUILD)/pipelines/ru
	$(PREPARE) $(BUILD)/text/$*.ru.txt $(RU) -o $@ --lines

# A finished run has model/; one that was stopped has run.json, and goes on.
NMT = --preset small --dev $(BUILD)/data/pairs-dev --update-tokens 2800 --batch-tokens 3400 --patience 0 --keep-best 1

$(BUILD)/nmt-first/model: | $(BUILD)/data/pairs
	if [ -f $(@D)/run.json ]; then $(CADEC) train nmt -o $(@D) --resume; else \
	$(CADEC) train nmt -o $(@D) --data $(BUILD)/data/pairs $(NMT) --learning-rate 1.5e-3 --warmup 500 \
	  --schedule cooldown --max-updates $(NMT_FIRST_UPDATES) --evaluate-every 500; fi

$(BUILD)/nmt/model: | $(BUILD)/nmt-first/model $(BUILD)/data/joined
	if [ -f $(@D)/run.json ]; then $(CADEC) train nmt -o $(@D) --resume; else \
	$(CADEC) train nmt -o $(@D) --start-from $(BUILD)/nmt-first --data $(BUILD)/data/pairs \
	  --data $(BUILD)/data/joined=0.7 $(NMT) --dropout 0.05 --learning-rate 1.2e-3 --warmup 50 --schedule cosine \
	  --max-updates $(NMT_UPDATES) --evaluate-every 400; fi

LM = --preset small --heads 8 --update-tokens 3600 --batch-tokens 4200 --patience 0 --keep-best 1
MODERN_DEV = --dev $(BUILD)/data/subtitle-blocks-dev --dev $(BUILD)/data/jokes-dev
LM_DATA = $(BUILD)/data/sentences $(MONOLINGUAL:%=$(BUILD)/data/%)

# First everything, for the language; then mostly dialogue of our time, for what people say to each other; then
# mostly passages in which something carries over, for what this is all about.
$(BUILD)/lm-first/model: | $(LM_DATA)
	if [ -f $(@D)/run.json ]; then $(CADEC) train lm -o $(@D) --resume; else \
	$(CADEC) train lm -o $(@D) --data $(BUILD)/data/plays --data $(BUILD)/data/jokes \
	  --data $(BUILD)/data/subtitle-blocks=2 --data $(BUILD)/data/prose=0.4 --data $(BUILD)/data/sentences=0.3 \
	  $(MONOLINGUAL:%=--dev $(BUILD)/data/%-dev) $(LM) --dropout 0.05 --learning-rate 1.5e-3 --warmup 300 \
	  --schedule cooldown --max-updates $(LM_FIRST_UPDATES) --evaluate-every 500; fi

$(BUILD)/lm-second/model: | $(BUILD)/lm-first/model
	if [ -f $(@D)/run.json ]; then $(CADEC) train lm -o $(@D) --resume; else \
	$(CADEC) train lm -o $(@D) --start-from $(BUILD)/lm-first --data $(BUILD)/data/subtitle-blocks=3 \
	  --data $(BUILD)/data/jokes --data $(BUILD)/data/plays=0.5 --data $(BUILD)/data/sentences=0.3 \
	  --data $(BUILD)/data/prose=0.05 $(MODERN_DEV) $(LM) --dropout 0.05 --learning-rate 1.2e-3 --warmup 60 \
	  --schedule cosine --max-updates $(LM_SECOND_UPDATES) --evaluate-every 200; fi

$(BUILD)/lm/model: | $(BUILD)/lm-second/model $(PASSAGES:%=$(BUILD)/data/%)
	if [ -f $(@D)/run.json ]; then $(CADEC) train lm -o $(@D) --resume; else \
	$(CADEC) train lm -o $(@D) --start-from $(BUILD)/lm-second \
	  --data $(BUILD)/data/names-pairs --data $(BUILD)/data/names-new=2 --data $(BUILD)/data/names-old=0.2 \
	  --data $(BUILD)/data/address-pairs --data $(BUILD)/data/address-new=1.5 --data $(BUILD)/data/address-old=0.5 \
	  --data $(BUILD)/data/subtitle-blocks=1.5 --data $(BUILD)/data/jokes=0.7 --data $(BUILD)/data/plays=0.3 \
	  --data $(BUILD)/data/sentences=0.4 $(MODERN_DEV) $(LM) --dropout 0 --window 128 --stride 96 \
	  --learning-rate 1.2e-3 --warmup 30 --schedule cosine --max-updates $(LM_UPDATES) --evaluate-every 200; fi

$(BUILD)/bundle/bundle.json: recipes/en-ru/card.md $(BUILD)/nmt/model $(BUILD)/lm/model
	rm -rf $(@D)
	$(CADEC) convert --nmt $(BUILD)/nmt --lm $(BUILD)/lm --source-pipeline $(BUILD)/pipelines/en \
	  --target-pipeline $(BUILD)/pipelines/ru --half --nbest 8 --temperature 4 --name "English-Russian, embedded" \
	  --lengths-from $(DEV).en $(DEV).ru --card recipes/en-ru/card.md -o $(BUILD)/bundle

# What T costs or gains, for the card: its choice is the T above.
$(BUILD)/tuned: $(BUILD)/bundle/bundle.json
	$(CADEC) tune $(DEV).en --ref $(DEV).ru --split --bundle $(BUILD)/bundle --no-save --force -o $(BUILD)/tuning \
	  -w 1 -T 1 -T 1.5 -T 2 -T 3 -T 4 -T 5 -T 8
	touch $@
