"""What the small world is made of."""

GIRLS = "Anna Mia Lucy Nora Ella Rosa Ivy Ada Clara Lily Emma Zoe Ruth Maya Hana Vera June Tess".split()
BOYS = "Tom Ben Max Leo Sam Jack Finn Oscar Hugo Paul Noah Adam Karl Theo Emil Luke Pete Ravi".split()
TRAITS = "brave kind shy clever curious quiet cheerful patient gentle funny careful proud".split()
COLOURS = "red blue green yellow white black brown orange purple pink grey".split()
SIZES = "small little big tiny large".split()

# animal: what it says, where it lives, what it eats, legs, its young, what it is known for
ANIMALS = {
    "dog": ("woof", "in a house with people", "meat and bones", 4, "a puppy", "it is loyal and loves to play"),
    "cat": (
        "meow",
        "in a house with people",
        "fish and mice",
        4,
        "a kitten",
        "it is quiet and likes to sleep in the sun",
    ),
    "cow": ("moo", "on a farm", "grass", 4, "a calf", "it gives milk"),
    "horse": ("neigh", "on a farm", "grass and oats", 4, "a foal", "it can run very fast"),
    "sheep": ("baa", "on a farm", "grass", 4, "a lamb", "it gives wool"),
    "pig": ("oink", "on a farm", "corn and roots", 4, "a piglet", "it likes to roll in the mud"),
    "goat": ("maa", "in the hills", "grass and leaves", 4, "a kid", "it can climb steep rocks"),
    "hen": ("cluck", "on a farm", "seeds and worms", 2, "a chick", "it lays eggs"),
    "duck": ("quack", "at a pond", "plants and small fish", 2, "a duckling", "it swims and flies"),
    "frog": ("croak", "at a pond", "flies", 4, "a tadpole", "it can jump very far"),
    "fox": ("yip", "in the forest", "mice and berries", 4, "a cub", "it is clever and has a red tail"),
    "bear": ("growl", "in the forest", "fish, berries and honey", 4, "a cub", "it sleeps all winter"),
    "wolf": ("howl", "in the forest", "meat", 4, "a pup", "it lives in a pack"),
    "owl": ("hoot", "in the forest", "mice", 2, "an owlet", "it sees well at night"),
    "rabbit": ("squeak", "in a field", "grass and carrots", 4, "a kit", "it has long ears and hops"),
    "mouse": ("squeak", "in a small hole", "seeds and cheese", 4, "a pup", "it is small and quick"),
    "bird": ("tweet", "in a nest in a tree", "seeds and worms", 2, "a chick", "it has wings and sings"),
    "bee": ("buzz", "in a hive", "the sweet juice of flowers", 6, "a larva", "it makes honey"),
    "fish": ("nothing at all", "in the water", "small plants", 0, "a fry", "it swims all day"),
    "snake": ("hiss", "in the grass", "mice and frogs", 0, "a hatchling", "it has no legs"),
    "lion": ("roar", "in a hot, dry land", "meat", 4, "a cub", "it is called the king of the animals"),
    "elephant": ("trumpet", "in a warm land", "leaves and fruit", 4, "a calf", "it is very big and has a long nose"),
    "turtle": (
        "almost nothing",
        "near the water",
        "leaves and fish",
        4,
        "a hatchling",
        "it carries its house on its back",
    ),
    "squirrel": ("chatter", "in a tree", "nuts", 4, "a kit", "it hides nuts for the winter"),
}
HERO_ANIMALS = "dog cat fox rabbit mouse bear bird owl frog duck squirrel turtle goat horse".split()

# thing: colours it may have, what it is for
PLURALS = {"mouse": "mice", "sheep": "sheep", "fish": "fish", "wolf": "wolves", "fox": "foxes"}
MORE_HEROES = "dragon robot king queen princess prince knight pirate giant witch snowman monkey penguin tiger".split()
MORE_TOYS = "sword crown guitar car train flute doll bicycle ship stone flower egg star".split()
THINGS = {
    "ball": "play with",
    "kite": "fly on a windy day",
    "book": "read",
    "lamp": "light up a dark room",
    "boat": "sail on the lake",
    "drum": "make music",
    "hat": "keep the head warm",
    "coat": "wear in the cold",
    "bell": "ring",
    "box": "keep things in",
    "key": "open a door",
    "cup": "drink from",
    "basket": "carry fruit in",
    "blanket": "keep warm at night",
    "map": "find the way",
    "wheel": "make a cart roll",
    "spoon": "eat soup with",
    "ladder": "climb up high",
    "umbrella": "stay dry in the rain",
    "clock": "tell the time",
    "hammer": "hit nails",
    "broom": "sweep the floor",
    "rope": "tie things up",
    "candle": "give a little light",
}
TOYS = "ball kite book drum hat bell box key cup basket blanket map scarf ring spoon lamp umbrella".split()
NATURAL_COLOURS = {
    "grass": "green",
    "the sky": "blue",
    "snow": "white",
    "milk": "white",
    "the sun": "yellow",
    "a banana": "yellow",
    "a lemon": "yellow",
    "a tomato": "red",
    "a strawberry": "red",
    "blood": "red",
    "coal": "black",
    "the night": "black",
    "a carrot": "orange",
    "a pumpkin": "orange",
    "a leaf": "green",
    "the sea": "blue",
    "chocolate": "brown",
    "a tree trunk": "brown",
    "a pig": "pink",
    "an elephant": "grey",
    "a plum": "purple",
    "a frog": "green",
    "a mouse": "grey",
    "a polar bear": "white",
    "a fire engine": "red",
    "corn": "yellow",
    "a cloud": "white",
}
MIXED = {
    ("red", "yellow"): "orange",
    ("blue", "yellow"): "green",
    ("red", "blue"): "purple",
    ("red", "white"): "pink",
    ("black", "white"): "grey",
}

# food: taste, what it is
FOODS = {
    "apples": ("sweet and fresh", "a fruit"),
    "pears": ("soft and sweet", "a fruit"),
    "plums": ("sweet and a bit sour", "a fruit"),
    "cherries": ("sweet and red", "a fruit"),
    "lemons": ("very sour", "a fruit"),
    "carrots": ("crunchy", "a vegetable"),
    "beans": ("good in a soup", "a vegetable"),
    "potatoes": ("filling", "a vegetable"),
    "onions": ("sharp", "a vegetable"),
    "bread": ("warm and soft", "made from flour and water"),
    "cheese": ("salty", "made from milk"),
    "soup": ("hot and good on a cold day", "cooked in a big pot"),
    "cake": ("sweet and soft", "baked in an oven"),
    "honey": ("very sweet", "made by bees"),
    "pancakes": ("best with jam", "fried in a pan"),
    "nuts": ("hard outside and good inside", "found on trees"),
    "rice": ("white and soft", "grown in wet fields"),
    "jam": ("sweet and sticky", "made from fruit and sugar"),
    "fish": ("light and good with lemon", "caught in the sea"),
}
PLACES = "the forest,the park,the lake,the hill,the market,the garden,the river,the beach,the old mill,the barn,the meadow,the village square".split(
    ","
)
WEATHER = {
    "sunny": ("the sun is shining", "a hat", "play outside"),
    "rainy": ("it is raining", "a raincoat", "stay inside and read a book"),
    "windy": ("the wind is blowing", "a jacket", "fly a kite"),
    "snowy": ("it is snowing", "a warm coat", "build a snowman"),
    "cold": ("it is cold", "gloves and a scarf", "drink something hot"),
    "hot": ("it is very hot", "a light shirt", "swim in the lake"),
    "foggy": ("there is thick fog", "a bright coat", "walk slowly and carefully"),
    "stormy": ("there is a storm", "good boots", "stay at home"),
}
SEASONS = {
    "spring": ("it gets warmer and the flowers grow", "flowers"),
    "summer": ("it is hot and the days are long", "sunshine"),
    "autumn": ("the leaves turn red and fall from the trees", "leaves"),
    "winter": ("it is cold and it often snows", "snow"),
}
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
MONTH_SEASON = [
    "winter",
    "winter",
    "spring",
    "spring",
    "spring",
    "summer",
    "summer",
    "summer",
    "autumn",
    "autumn",
    "autumn",
    "winter",
]
OPPOSITES = [
    ("big", "small"),
    ("hot", "cold"),
    ("day", "night"),
    ("up", "down"),
    ("fast", "slow"),
    ("happy", "sad"),
    ("old", "young"),
    ("light", "dark"),
    ("wet", "dry"),
    ("open", "closed"),
    ("full", "empty"),
    ("loud", "quiet"),
    ("early", "late"),
    ("strong", "weak"),
    ("near", "far"),
    ("hard", "soft"),
    ("clean", "dirty"),
    ("rich", "poor"),
    ("high", "low"),
    ("long", "short"),
]
JOBS = {
    "baker": "bakes bread and cakes",
    "farmer": "grows food and looks after animals",
    "teacher": "helps children to learn",
    "doctor": "helps people who are ill",
    "sailor": "works on a ship",
    "miller": "makes flour from grain",
    "smith": "makes things of iron",
    "gardener": "looks after plants",
    "cook": "makes meals for others",
    "carpenter": "builds things of wood",
    "tailor": "makes clothes",
    "painter": "paints pictures",
    "singer": "sings songs",
    "fisher": "catches fish",
    "postman": "brings letters",
}

# The valley of Linden. town: side, known for, food, mayor, landmark, how many people
TOWNS = {
    "Alder": ("in the north", "its tall clock tower", "apple cake", "Mrs Reed", "a wooden bridge", 400),
    "Brook": ("by the river", "its water mills", "fish soup", "Mr Hale", "three old mills", 600),
    "Corin": ("in the east", "its blue glass", "honey bread", "Mrs Vane", "a glass house", 300),
    "Dunmore": ("in the hills", "its stone walls", "goat cheese", "Mr Stone", "a ruined castle", 200),
    "Elmsea": ("by the sea", "its white lighthouse", "fried fish", "Mrs Wick", "a long pier", 900),
    "Fenn": ("in the south", "its yellow fields", "corn pancakes", "Mr Oats", "a windmill", 500),
    "Garth": ("in the west", "its copper mine", "potato pie", "Mrs Cole", "a deep mine", 700),
    "Hollin": (
        "in the forest",
        "its carved toys",
        "mushroom soup",
        "Mr Birch",
        "a tree that is a thousand years old",
        100,
    ),
}

# goods that the valley trades: what it is, what it is used for
GOODS = {
    "copper": ("a red metal", "pots and wires"),
    "iron": ("a grey metal", "tools and nails"),
    "salt": ("white and fine", "cooking"),
    "wool": ("soft and warm", "coats and blankets"),
    "timber": ("wood for building", "houses and boats"),
    "wheat": ("a yellow grain", "flour and bread"),
    "glass": ("clear and hard", "windows and cups"),
    "honey": ("sweet and golden", "cakes and tea"),
    "coal": ("black and hard", "fires and stoves"),
    "cotton": ("white and light", "shirts and sheets"),
    "sugar": ("sweet and white", "cakes and jam"),
    "leather": ("brown and strong", "shoes and bags"),
}
